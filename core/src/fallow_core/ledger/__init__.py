"""The batch ledger: pure arithmetic from samples, rows and policy to offers, each with its explanation.

`capacity` says what a node can lend, `rows` what each framework's scheduler may believe, `sharing` divides capacity
over accounts and rows, `publishing` says what is due now; `fleet` does the same for many nodes at once. No I/O, no
clock, no plugin: time is an argument.
"""
