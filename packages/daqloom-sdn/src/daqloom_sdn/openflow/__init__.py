"""The software switch as an OpenFlow 1.3.5 switch (ONF TS-023), controlled by controllers."""
