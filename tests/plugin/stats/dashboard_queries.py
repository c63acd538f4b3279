#!/usr/bin/env python3
"""Asks a Prometheus what every panel and variable of the dashboard asks: each has to answer with data.

usage: dashboard_queries.py PROMETHEUS_URL DASHBOARD [ANSWERS]

ANSWERS: a file that gets every panel's answers of the next minutes, for a picture (dashboard_picture.py).
"""

import json
import re
import sys
import time
import urllib.parse
import urllib.request

# What Grafana puts in the place of its variables.
VALUES = {"$node": ".*", "$job": ".*", "$__rate_interval": "40s"}
PATIENCE_S = 180
SHOWN_S = 240


def ask(url, path, **arguments):
    with urllib.request.urlopen("%s/api/v1/%s?%s" % (url, path, urllib.parse.urlencode(arguments)),
                                timeout=60) as answer:
        said = json.load(answer)
    assert said["status"] == "success", said
    return said["data"]


def filled(expression):
    for variable, value in VALUES.items():
        expression = expression.replace(variable, value)
    assert "$" not in expression, "a variable that nobody fills: " + expression
    return expression


def until_answered(url, expression):
    """A rate has no value before its counter has been read twice."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        result = ask(url, "query", query=expression)["result"]
        if any(one["value"][1] != "NaN" for one in result):
            return len(result)
        if time.monotonic() > deadline:
            sys.exit("FAILED: no data for " + expression)
        time.sleep(1)


def check_variable(url, variable):
    asked = variable["query"]["query"]
    wanted = re.fullmatch(r"label_values\((.*), (\w+)\)", asked)
    series = ask(url, "series", **{"match[]": filled(wanted.group(1))})
    assert {one[wanted.group(2)] for one in series}, asked


def main():
    url, dashboard = sys.argv[1], json.load(open(sys.argv[2], encoding="utf-8"))
    queries, answers = 0, []
    until_answered(url, filled(dashboard["panels"][0]["targets"][0]["expr"]))
    begun = time.time()
    time.sleep(SHOWN_S if len(sys.argv) > 3 else 0)
    for panel in dashboard["panels"]:
        kept = {"panel": panel["title"], "answers": []}
        for target in panel["targets"]:
            expression = filled(target["expr"])
            until_answered(url, expression)
            queries += 1
            now = time.time()
            kept["answers"].append({"legend": target.get("legendFormat", ""), "result": ask(
                url, "query_range", query=expression, start=begun, end=now, step=1)["result"]})
        answers.append(kept)
    for variable in dashboard["templating"]["list"]:
        if variable["type"] == "query":
            check_variable(url, variable)
            queries += 1
    if len(sys.argv) > 3:
        with open(sys.argv[3], "w", encoding="utf-8") as out:
            json.dump(answers, out)
    print("%d queries of the dashboard answered with data" % queries)


main()
