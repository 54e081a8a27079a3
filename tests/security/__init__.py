"""Hostile tasks, peers and hosts, tried for real: each is a small program in `hostile`.

A program runs as another user where the tests run as root, else as this one. A test starts what a user starts, or the
smallest part of it that the attack meets, and shows that the attack changes nothing for anybody else. It must not
stand in for the attack with a fake: that is what the unit tests beside each layer do.
"""
