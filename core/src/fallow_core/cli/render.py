"""Answers of a running Fallow as lines for people."""

from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from fallow_core.cli import render_agent
from fallow_core.cli.capacity_lines import capacity_lines
from fallow_core.cli.render_throttling import throttled
from fallow_core.cli.table import amount, paragraph, seconds, switch_words, table
from fallow_hookspecs import RESOURCE_NAMES, Finding, ResourceName

Answer = dict[str, Any]

UNITS: dict[ResourceName, str] = {"cpu": "CPU, cores", "memory": "memory, GiB"}
FIELDS: dict[ResourceName, str] = {"cpu": "cpu_milli", "memory": "memory_bytes"}
MOST_IN_FLIGHT = 4
SWITCHED = {
    "hold": "its offers do not grow",
    "drain": "no new work starts",
    "stop": "no new work starts, and what does not end by itself is terminated",
    "restored": "it keeps the sizes found first",
}


def status(answer: Answer) -> list[str]:
    """`fallow status`."""
    lines = [f"{_mode(answer)}, up {seconds(answer['uptime_seconds'])}, {answer['config_file']}"]
    lines += _marked(_problems(answer))
    for node in answer["nodes"]:
        pool = f", pool {node['pool']}" if node["pool"] else ""
        lines += ["", f"node {node['node']}{pool}", *_node_table(node)]
    for cluster in answer["clusters"]:
        lines += ["", *_cluster(cluster)]
    return lines


def _mode(answer: Answer) -> str:
    sending = "nothing is sent" if answer["mode"] == "observe" else "offers are sent"
    return f"publishing mode {answer['mode']} ({sending})"


def _marked(problems: Iterable[str], indent: str = "") -> list[str]:
    return [line for problem in problems for line in paragraph(f"! {problem}", indent)]


def _problems(answer: Answer) -> list[str]:
    problems = [*answer["config_problems"], *(f"{name}: {why}" for name, why in answer["failed"].items())]
    problems += [f"{name}: not used on this host: {why}" for name, why in answer.get("not_selected", {}).items()]
    removed = answer.get("departing", {}).items()
    problems += [f"{name}: removed from the configuration, and still counted: {why}" for name, why in removed]
    problems += [f"{name}: still being built" for name in answer["building"]]
    problems += [f"{resource}: {why}" for resource, why in answer["sample_problems"].items()]
    problems += [*answer["refused"], *answer.get("probe_problems", ()), *answer.get("throttle_problems", ())]
    problems += [switch_words(switch) for switch in answer["switches"] if "/" not in switch["scope"]]
    problems += [
        f"{row['cluster']} {row['framework_node']}: known from before and not reported yet; until then nothing grows"
        for node in answer["nodes"]
        for row in node["awaited"]
    ]
    problems += ["the sizes found first are being put back"] if answer["restoring"] else []
    return problems + [text for text in (answer["journal_error"], answer["journal_lost"]) if text]


def _node_table(node: Answer) -> list[str]:
    head = ["", "HAS", "IN USE", "OF IT BATCH", "CAN LEND", "ALLOCATED", "BELIEVED", "EXPOSURE", "OVERDRAFT", "AGE"]
    keys = ["capacity", "used", "batch_used", "batch", "allocated", "believed", "exposure", "overdraft"]
    lines = [head]
    for name in RESOURCE_NAMES:
        values = [amount(name, node[name][key]) for key in keys]
        lines.append([UNITS[name], *values, seconds(node[name]["sample_age_seconds"])])
    return table(lines, indent="  ")


def _cluster(cluster: Answer) -> list[str]:
    plugin, switch, age = cluster["plugin"], cluster["switch"], cluster["report_age_seconds"]
    who = f" (by {switch['who']}{': ' + switch['why'] if switch['why'] else ''})" if switch["who"] else ""
    title = (
        f"cluster {cluster['cluster']}   {plugin['distribution']} {plugin['version']}   switch {switch['state']}{who}"
    )
    report = "no report yet" if age is None else f"{cluster['detail'] or 'reported'}; report {seconds(age)} old"
    lines = [*paragraph(title), *paragraph(report, "  ")]
    failing = [f"{call} failed: {reason}" for call, reason in cluster["failing"].items()]
    failing += [f"wrapper {name} failed: {reason}" for name, reason in cluster["wrappers"].items()]
    lanes = [f"{lane} {_lane(cluster[lane])}" for lane in ("reads", "acts") if cluster[lane]["state"] != "ok"]
    lines += _marked([*failing, *lanes, *_incapable(cluster["capabilities"])], "  ")
    if not cluster["rows"]:
        return [*lines, "  no node of this cluster is seen here"]
    head = ["", "ALLOCATED", "IN FORCE", "IN FLIGHT", "BELIEF", "OFFER", "FLOOR", "AT FIRST"]
    amounts = [[UNITS[name], *_amounts(name, row)] for row in cluster["rows"] for name in RESOURCE_NAMES]
    first, *rest = table([head, *amounts], indent="    ")
    lines.append(first)
    for number, row in enumerate(cluster["rows"]):
        lines.append(f"  {row['framework_node']}   {row['state']}, seen {seconds(row['age_seconds'])} ago")
        lines += rest[number * len(RESOURCE_NAMES) :][: len(RESOURCE_NAMES)]
        lines += [line for note in _notes(row) for line in paragraph(note, "    ")]
    return lines


def _lane(lane: Answer) -> str:
    """A lane that is not well. Why a call failed is told with the call; here is what that means for the next ones."""
    if lane["state"] == "stalled":
        return f"stalled: {lane['reason']}"
    if lane["state"] == "broken":
        return "broken: no further call before the configuration is changed"
    failures, again = lane["failures"], lane["next_try_in_seconds"]
    when = f"in {seconds(again)}" if again else "with the next call that is due"
    return f"{lane['state']} after {failures} failure{'' if failures == 1 else 's'}: next try {when}"


def _incapable(capabilities: Answer | None) -> list[str]:
    ignored = [name for name in RESOURCE_NAMES if capabilities and not capabilities[name]["honoured"]]
    return [f"the framework ignores {name}: its offers hold nothing back" for name in ignored]


def _amounts(name: ResourceName, row: Answer) -> list[str]:
    flight = [_part(name, size) for size in row["in_flight"]]
    shown = ", ".join([*(["..."] if len(flight) > MOST_IN_FLIGHT else []), *flight[-MOST_IN_FLIGHT:]])
    before, after = ("allocated", "in_force"), ("belief", "offer", "floor", "original")
    return [*(_part(name, row[key]) for key in before), shown or "-", *(_part(name, row[key]) for key in after)]


def _notes(row: Answer) -> list[str]:
    notes = [f"due: {row['due']['why']}"] if row["due"] else []
    notes += [f"refused: {row['refusal']}"] if row["refusal"] else []
    return [*notes, "somebody else changed the size"] if row["changed_by_others"] else notes


def _part(name: ResourceName, size: Answer | None) -> str:
    return amount(name, None if size is None else size[FIELDS[name]])


def explanation(answer: Answer) -> list[str]:
    """`fallow explain`: each number with the terms it was made from."""
    lines = [f"node {answer['node']}, {_mode(answer)}"]
    for switch in answer["switches"]:
        lines += paragraph(f"{switch['cluster']}: {switch_words(switch)}; {SWITCHED[switch['state']]}", "  ")
    for name in RESOURCE_NAMES:
        lines += ["", UNITS[name], *_arithmetic(name, answer["resources"][name])]
    lines += ["", *throttled(answer["throttle"])] if "throttle" in answer else []
    lines.append("")
    for text in (*map(_pending, answer["pending"]), *map(_given_up, answer["floors_given_up"])):
        lines += paragraph(text)
    for held in answer["withheld"]:
        key = held["key"]
        lines += paragraph(f"not made: the larger offer to {key['cluster']} {key['framework_node']}; {held['why']}")
    for due in answer["due"]:
        when = "at once" if due["urgent"] else "with the next call"
        key, size = due["key"], _size(due["size"])
        lines += paragraph(f"due {when}: {key['cluster']} {key['framework_node']} to {size}; {due['why']}")
    if answer.get("role") == "agent":
        lines += render_agent.due(answer["ledger_row"])
    elif not answer["due"]:
        reasons = "every size is within the dead band, or waits for its growth to hold, or its cluster was restored"
        lines.append(f"nothing is due: {reasons}")
    for take_back in answer["take_backs"]:
        lines += paragraph(_take_back(take_back))
    for decision in answer["decisions"]:
        lines += ["", *_decision(decision)]
    return lines


def _given_up(floor: Answer) -> str:
    """Why a floor is not offered, and for how long."""
    key, left = floor["key"], seconds(floor["left_seconds"])
    where = f"the floor of {key['cluster']} {key['framework_node']}"
    return f"given up for another {left}: {where}; pressure ended a task in it twice within an hour"


def _pending(pending: Answer) -> str:
    """What a cluster has waiting, and by whom."""
    total = _size(pending["total"])
    if pending["smallest"] is not None:
        total += f" (smallest request {_size(pending['smallest'])}; largest {_size(pending['largest'])})"
    return f"{pending['cluster']} has pending {total}{'; ' if pending['detail'] else ''}{pending['detail']}"


def _size(size: Answer | None) -> str:
    return ", ".join(f"{UNITS[name]}: {_part(name, size)}" for name in RESOURCE_NAMES)


def _take_back(take_back: Answer) -> str:
    name, active = take_back["resource"], take_back["active"]
    over = f"{UNITS[name]} above the offer: {amount(name, take_back['overdraft'])}"
    does = "is taken back" if take_back["mode"] == "enforce" else "would be taken back"
    doing = "" if active is None else f"; {does} down to {amount(name, active['size'])}"
    key = take_back["key"]
    return f"{key['cluster']} {key['framework_node']}: {over}{doing}; {take_back['why']} (mode {take_back['mode']})"


def _decision(decision: Answer) -> list[str]:
    """One choice of who ends: the need, the victims with their harm, those spared, and what became of it."""
    did = "ended" if decision["enforced"] else "would have ended (observe)"
    head = f"{seconds(decision['ago_seconds'])} ago {decision['strategy']} {did} {len(decision['victims'])} tasks"
    lines = [head, *(line for text in decision["arithmetic"] for line in paragraph(text, indent="  "))]
    lines += [line for text in decision["outcomes"] for line in paragraph(text, indent="  → ")]
    barred = "; ".join(f"{task}: {why}" for task, why in decision["barred"].items())
    return [*lines, *paragraph(f"may not end: {barred}", indent="  ")] if barred else lines


def _arithmetic(name: ResourceName, ledger: Answer) -> list[str]:
    def shown(value: float | None) -> str:
        return amount(name, value)

    capacity, lines = ledger["capacity"], []
    if capacity is None:
        lines.append("  never measured: no size changes")
    else:
        lines += capacity_lines(name, capacity, ledger["sample_age_seconds"])
    lines.append(
        f"  allocated {shown(ledger['allocated'])}, believed {shown(ledger['believed'])}, exposure "
        f"{shown(ledger['exposure'])}, overdraft {shown(ledger['overdraft'])}"
    )
    for account in ledger["accounts"]:
        demand = "everything" if account["demand"] is None else shown(account["demand"])
        limit = "" if account["limit"] is None else f", limit {shown(account['limit'])}"
        if account["of_tasks"] is not None:
            limit += (
                f" (CPU not honoured: no more than the tasks need that batch CPU is for, {shown(account['of_tasks'])})"
            )
        drains = "; drains for one that waits" if account["drains_for_others"] else ""
        lines += paragraph(
            f"account {account['cluster']}: weight {account['weight']}, allocated {shown(account['allocated'])}, "
            f"wants {demand}{limit}, floor {shown(account['floor'])} → fair {shown(account['fair'])}, "
            f"target {shown(account['target'])}{drains}",
            "  ",
        )
    ignoring = {account["cluster"] for account in ledger["accounts"] if not account["honoured"]}
    for row in ledger["rows"]:
        believed = shown(row["belief"]) + (" (not honoured)" if row["key"][1] in ignoring else "")
        reasons = f" ({'; '.join(row['reasons'])})" if row["reasons"] else ""
        lines += paragraph(
            f"{row['key'][2]}: target {shown(row['target'])} → offer {shown(row['size'])}{reasons}; "
            f"in force {shown(row['in_force'])}, newest sent {shown(row['newest'])}, belief {believed}",
            "    ",
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
        text = f"{marks[finding['ok']]}  {finding['about']}: {finding['subject']}: {finding['detail']}"
        lines += paragraph(text, hanging=" " * 7)
        if finding["advice"] and finding["ok"] is not True:
            lines += paragraph(f"→ {finding['advice']}", " " * 7, "  ")
    wrong = sum(finding["ok"] is False for finding in found)
    return [*lines, "", f"{len(found)} findings, {wrong} wrong"]


def restored(answer: Answer) -> list[str]:
    """`fallow restore`: what became of each row, and what else kept a size from being put back."""
    lines = []
    for row in answer["rows"]:
        sizes = ", ".join(f"{UNITS[name]}: {_part(name, row['in_force'])}" for name in RESOURCE_NAMES)
        lines += paragraph(f"{row['cluster']} {row['framework_node']}: {row['detail']}; in force {sizes}")
    lines += [f"control group {group}: put back as it was found" for group in answer.get("groups", ())]
    lines += _marked(answer["problems"])
    return lines or ["no node of any cluster is here: nothing to put back"]


def adopted(answer: Answer) -> list[str]:
    """`fallow adopt`: the nodes that it was said of."""
    nodes = ", ".join(answer["nodes"]) or "no node, since none is seen"
    return [f"{answer['cluster']}: what was there at first may now be taken back on {nodes}"]
