"""Sends offers to the ResourceManager as node sizes, and sends them again after a failover.

`publisher` decides what is sent for each offer, `resend` keeps the newest sizes for the next ResourceManager, and
`answers` turns what became of an update into the contract's answer. Nothing here decides how much is offered.
"""
