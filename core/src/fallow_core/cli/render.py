"""Answers of a running Fallow as lines for people."""

from dataclasses import asdict
from typing import Any

from fallow_core.cli.table import amount, seconds, table
from fallow_hookspecs import RESOURCE_NAMES, Finding, ResourceName

Answer = dict[str, Any]

UNITS: dict[ResourceName, str] = {"cpu": "CPU, cores", "memory": "memory, GiB"}
FIELDS: dict[ResourceName, str] = {"cpu": "cpu_milli", "memory": "memory_bytes"}


def status(answer: Answer) -> list[str]:
    """`fallow status`."""
    sending = "nothing is sent" if answer["mode"] == "observe" else "offers are sent"
    lines = [
        f"publishing mode {answer['mode']} ({sending}), up {seconds(answer['uptime_seconds'])}, {answer['config_file']}"
    ]
    lines += [f"! {problem}" for problem in _problems(answer)]
    for node in answer["nodes"]:
        lines += ["", f"node {node['node']}", *_node_table(node)]
    for cluster in answer["clusters"]:
        lines += ["", *_cluster(cluster)]
    return lines


def _problems(answer: Answer) -> list[str]:
    problems = [*answer["config_problems"], *(f"{name}: {why}" for name, why in answer["failed"].items())]
    problems += [f"{name}: still being built" for name in answer["building"]]
    problems += [f"{resource}: {why}" for resource, why in answer["sample_problems"].items()]
    return [*problems, answer["journal_error"]] if answer["journal_error"] else problems


def _node_table(node: Answer) -> list[str]:
    head = ["", "HAS", "IN USE", "OF IT BATCH", "CAN LEND", "ALLOCATED", "BELIEVED", "EXPOSURE", "OVERDRAFT", "AGE"]
    keys = ["capacity", "used", "batch_used", "batch", "allocated", "believed", "exposure", "overdraft"]
    lines = [head]
    for name in RESOURCE_NAMES:
        values = [amount(name, node[name][key]) for key in keys]
        lines.append([UNITS[name], *values, seconds(node[name]["sample_age_seconds"])])
    return table(lines, indent="  ")


def _cluster(cluster: Answer) -> list[str]:
    plugin, switch = cluster["plugin"], cluster["switch"]
    who = f" (by {switch['who']}{': ' + switch['why'] if switch['why'] else ''})" if switch["who"] else ""
    lines = [
        f"cluster {cluster['cluster']}   switch {switch['state']}{who}   {plugin['distribution']} {plugin['version']}",
        f"  {cluster['detail'] or 'no report yet'}; report {seconds(cluster['report_age_seconds'])} old",
    ]
    lines += [f"  ! {lane}: {_lane(cluster[lane])}" for lane in ("reads", "acts") if cluster[lane]["state"] != "ok"]
    lines += [f"  ! {text}" for text in _incapable(cluster["capabilities"])]
    if not cluster["rows"]:
        return [*lines, "  no node of this cluster is seen here"]
    head = ["NODE", "STATE", "", "ALLOCATED", "IN FORCE", "IN FLIGHT", "BELIEF", "OFFER", "FLOOR", "AT FIRST", "NOTE"]
    body = [line for row in cluster["rows"] for line in _row(row)]
    return [*lines, *table([head, *body], indent="  ")]


def _lane(lane: Answer) -> str:
    again = lane["next_try_in_seconds"]
    when = "" if again is None else f"; next try in {seconds(again)}"
    return f"{lane['state']}: {lane['reason']} ({lane['failures']} failures{when})"


def _incapable(capabilities: Answer | None) -> list[str]:
    ignored = [name for name in RESOURCE_NAMES if capabilities and not capabilities[name]["honoured"]]
    return [f"the framework ignores {name}: its offers hold nothing back" for name in ignored]


def _row(row: Answer) -> list[list[str]]:
    notes = [row["due"]["why"]] if row["due"] else []
    if row["refusal"]:
        notes.append(f"refused: {row['refusal']}")
    if row["changed_by_others"]:
        notes.append("somebody else changed the size")
    lines = []
    for name in RESOURCE_NAMES:
        first = name == RESOURCE_NAMES[0]
        sizes = [_part(name, row[key]) for key in ("allocated", "in_force")]
        flight = ", ".join(_part(name, size) for size in row["in_flight"]) or "-"
        rest = [_part(name, row[key]) for key in ("belief", "offer", "floor", "original")]
        names = [row["framework_node"], row["state"]] if first else ["", ""]
        lines.append([*names, UNITS[name], *sizes, flight, *rest, "; ".join(notes) if first else ""])
    return lines


def _part(name: ResourceName, size: Answer | None) -> str:
    return amount(name, None if size is None else size[FIELDS[name]])


def explanation(answer: Answer) -> list[str]:
    """`fallow explain`: each number with the terms it was made from."""
    lines = [f"node {answer['node']}"]
    for name in RESOURCE_NAMES:
        lines += ["", UNITS[name], *_arithmetic(name, answer["resources"][name])]
    lines.append("")
    if not answer["due"]:
        return [*lines, "nothing is due: every size is within the band, or waits for its growth to hold"]
    for due in answer["due"]:
        sizes = ", ".join(f"{UNITS[name]}: {_part(name, due['size'])}" for name in RESOURCE_NAMES)
        when = "at once" if due["urgent"] else "with the next call"
        lines.append(f"due {when}: {due['key']['cluster']} {due['key']['framework_node']} to {sizes}; {due['why']}")
    return lines


def _arithmetic(name: ResourceName, ledger: Answer) -> list[str]:
    def shown(value: float | None) -> str:
        return amount(name, value)

    capacity, lines = ledger["capacity"], []
    if capacity is None:
        lines.append("  never measured: no size changes")
    else:
        lines += [
            (
                f"  system  {shown(capacity['system'])} = the larger of: in use {shown(capacity['used'])} − its batch "
                f"{shown(capacity['batch_used'])}; reserved {shown(capacity['reserved'])}"
            ),
            (
                f"  margin  {shown(capacity['margin'])} = {shown(capacity['capacity'])} × (100 − watermark "
                f"{capacity['watermark_percent']}) %"
            ),
            (
                f"  batch   {shown(capacity['batch'])} = {shown(capacity['capacity'])} − margin − system, "
                f"from 0 to {shown(capacity['cap'])}   (measured {seconds(ledger['sample_age_seconds'])} ago)"
            ),
        ]
    lines.append(
        f"  allocated {shown(ledger['allocated'])}, believed {shown(ledger['believed'])}, exposure "
        f"{shown(ledger['exposure'])}, overdraft {shown(ledger['overdraft'])}"
    )
    for account in ledger["accounts"]:
        demand = "everything" if account["demand"] is None else shown(account["demand"])
        limit = "" if account["limit"] is None else f", limit {shown(account['limit'])}"
        drains = "; drains for one that waits" if account["drains_for_others"] else ""
        lines.append(
            f"  account {account['cluster']}: weight {account['weight']}, allocated {shown(account['allocated'])}, "
            f"wants {demand}{limit}, floor {shown(account['floor'])} → fair {shown(account['fair'])}, "
            f"target {shown(account['target'])}{drains}"
        )
    for row in ledger["rows"]:
        reasons = f" ({'; '.join(row['reasons'])})" if row["reasons"] else ""
        lines.append(
            f"    {row['key'][2]}: target {shown(row['target'])} → offer {shown(row['size'])}{reasons}; "
            f"in force {shown(row['in_force'])}, newest sent {shown(row['newest'])}, belief {shown(row['belief'])}"
        )
    return lines


def finding_values(about: str, finding: Finding) -> Answer:
    """A finding for JSON."""
    return {"about": about, **asdict(finding)}


def findings(found: list[Answer]) -> list[str]:
    """`fallow doctor`: one line a finding, and below what is wrong what to change."""
    marks = {True: "ok   ", False: "WRONG", None: "?    "}
    lines = []
    for finding in found:
        lines.append(f"{marks[finding['ok']]}  {finding['about']}: {finding['subject']}: {finding['detail']}")
        if finding["advice"] and finding["ok"] is not True:
            lines.append(f"       → {finding['advice']}")
    wrong = sum(finding["ok"] is False for finding in found)
    return [*lines, "", f"{len(found)} findings, {wrong} wrong"]


def restored(answer: Answer) -> list[str]:
    """`fallow restore`: what each row has now, and what is still allocated above it."""
    lines = []
    for cluster in answer["clusters"]:
        for row in cluster["rows"]:
            sizes = ", ".join(f"{UNITS[name]}: {_part(name, row['in_force'])}" for name in RESOURCE_NAMES)
            lines.append(f"{cluster['cluster']} {row['framework_node']}: {_outcome(row)}; in force {sizes}")
        if not cluster["rows"]:
            reason = cluster["reads"]["reason"] or "it reported none"
            lines.append(f"{cluster['cluster']}: no node seen, nothing put back: {reason}")
    lines += [f"{name}: nothing put back: {why}" for name, why in answer["failed"].items()]
    return lines or ["no cluster is configured: nothing to put back"]


def _outcome(row: Answer) -> str:
    original = row["original"]
    if original is None:
        return "never changed by Fallow"
    if row["in_flight"]:
        return "sent, not seen in force yet"
    if any(row["in_force"][field] < original[field] for field in FIELDS.values()):
        return "NOT restored"
    above = [name for name, field in FIELDS.items() if row["allocated"][field] > row["in_force"][field]]
    return f"restored; still allocated above it: {', '.join(above)}" if above else "restored"
