"""The software switch as a switch of OpenFlow 1.3.5 (ONF TS-023), which controllers steer."""
