"""Tests of the parser of InfluxDB's line protocol."""

from hypothesis import given
from hypothesis import strategies as st

from daqloom_adapters.line_protocol import Point, points


def test_line_protocol():
    text = (
        "# a comment\n"
        "\n"
        "my\\ table\\,1,a\\ tag=a\\=b\\,c,back\\slash=C:\\\\x a\\ field=-1.5e3,n=7i 12\n"
        ' my\\ table\\,1 text="1i, b=2",t=true,x=.5,u=9u  -3\r\n'
        "my\\ table n=1i 12\n"
    )
    assert points(text.split("\n"), "my table,1") == [
        Point({"a tag": "a=b,c", "back\\slash": "C:\\\\x"}, {"a field": -1500.0, "n": 7}, 12),
        Point({}, {"x": 0.5, "u": 9}, -3),
    ]


word = st.text(st.sampled_from("ab ,=\"'é"), min_size=1, max_size=6)


def escaped(text):
    return "".join(f"\\{letter}" if letter in ",= " else letter for letter in text)


@given(
    st.dictionaries(word, word, max_size=3), word, st.integers(0, (1 << 64) - 1), st.integers(0, 9)
)
def test_escaped_names_are_read_back(tags, name, value, at):
    line = "m" + "".join(f",{escaped(key)}={escaped(tag)}" for key, tag in tags.items())
    quoted = name.replace('"', '\\"')
    text = f'{line} s="x,y=1 {quoted}",{escaped(name)}={value}u {at}\n'
    assert points(text.split("\n"), "m") == [Point(tags, {name: value}, at)]
