"""The registry of run numbers."""

import multiprocessing
import stat

import pytest

from daqloom.control.run_numbers import RunNumbers
from daqloom.results.errors import MeasureError


def test_numbers_begin_at_1_and_go_on_in_a_new_process(tmp_path):
    file = tmp_path / "new" / "run-number"
    assert [RunNumbers(file).take() for _ in range(3)] == [1, 2, 3]
    assert file.read_text() == "3\n"
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700


def test_a_number_of_a_hook_raises_later_ones_and_lowers_none(tmp_path):
    numbers = RunNumbers(tmp_path / "run-number")
    assert numbers.take(500) == 500
    assert numbers.take() == 501
    assert numbers.take(7) == 7
    assert numbers.take() == 502


@pytest.mark.parametrize("text", ["", "seven", "-1", "1\n2", "9007199254740992", "\0", "9" * 100])
def test_a_damaged_registry_is_a_sentence_and_stays(tmp_path, text):
    file = tmp_path / "run-number"
    file.write_text(text)
    with pytest.raises(MeasureError, match="run-number holds no run number; write the last one"):
        RunNumbers(file).take()
    assert file.read_text() == text


def test_a_registry_that_cannot_be_written_is_a_sentence(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(MeasureError, match=r"cannot be recorded in .*: file exists; give a folder"):
        RunNumbers(tmp_path / "file" / "run-number").take()


def take(file, count, found):
    found.put([RunNumbers(file).take() for _ in range(count)])


@pytest.mark.process
def test_run_controls_that_share_a_registry_never_get_the_same_number(tmp_path):
    context = multiprocessing.get_context("spawn")
    found = context.Queue()
    file = tmp_path / "run-number"
    takers = [context.Process(target=take, args=(file, 25, found)) for _ in range(3)]
    for taker in takers:
        taker.start()
    numbers = [number for _ in takers for number in found.get(timeout=120)]
    for taker in takers:
        taker.join()
    assert sorted(numbers) == list(range(1, 76))
