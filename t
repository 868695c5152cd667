13.83 wall 6.93 user 2.27 sys: measure laptop
