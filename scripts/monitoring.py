#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Checks our metrics with the programs that read them: Prometheus, its node_exporter and promtool, and the strict
OpenMetrics parser of its Python client, all of Debian's packages, unpacked into the cache; and Grafana's model of a
dashboard, of PyPI. Needs no root and no scheduler: tests/monitoring/serve.rs serves invented statistics. The last line
is 'N passed, N failed, N skipped'."""
import argparse
import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import textwrap
import time
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(TOP / "scripts/guest"))
from archive import CACHE, Archive, LabError, codename, fetching            # noqa: E402
from sums import Sums                                                       # noqa: E402

PACKAGES = ["prometheus", "prometheus-node-exporter", "python3-prometheus-client", "python3-decorator"]
ALERTS, CONTRIB = "prometheus-alerts.yml", TOP / "contrib"
OPEN = "application/openmetrics-text; version=1.0.0"
# Where cargo, as called by scripts/test, puts its builds.
BUILT = TOP / os.environ.get("CARGO_TARGET_DIR", "target") / "release"
# The values that Grafana inserts for its variables.
VARIABLES = {"$__rate_interval": "15s", "$instance": ".*", "$arm": ".*"}
WIDTH = 24
# Grafana's own model of a dashboard, generated from its schema; pure Python, from PyPI.
SDK = "grafana-foundation-sdk==1769699998!10.1.0"
# Grafana writes and reads these, but its schema lacks them.
NOT_IN_SCHEMA = {"definition", "titleFormat"}
# The limit for a machine with other work; an idle one takes less.
PATIENCE = 60


def tools():
    """The folder with the unpacked packages, fetched once for each release of Debian."""
    if os.uname().machine != "x86_64":
        raise LabError(f"the packages are fetched for x86_64, and this machine is {os.uname().machine}")
    return Archive("monitoring", (codename(),)).fetched(CACHE / "monitoring" / codename(), lambda: PACKAGES)


def sdk():
    """The folder with it, fetched once."""
    dest = CACHE / "monitoring" / SDK.replace("==", "-").replace("!", "-")
    with fetching():
        if (dest / "grafana_foundation_sdk").exists():
            return dest
        p = subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", dest, SDK],
                           text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if p.returncode:
            raise LabError(f"pip cannot fetch {SDK}: {(p.stdout.strip().splitlines() or ['no reason'])[-1]}")
    return dest


def wait_for(what, is_there):
    end = time.monotonic() + PATIENCE
    while not (value := is_there()):
        if time.monotonic() > end:
            raise AssertionError(f"{what} did not come within {PATIENCE} s")
        time.sleep(0.1)
    return value


def get(url, accept="*/*"):
    request = urllib.request.Request(url, headers={"Accept": accept})
    with urllib.request.urlopen(request, timeout=10) as answer:
        return answer.headers["Content-Type"], answer.read().decode()


def answers(url):
    try:
        get(url)
    # It does not listen yet; or 503: it listens and is not ready.
    except OSError:
        return False
    return True


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Setup:
    """Statistics, exporter, node_exporter and Prometheus, each reading the previous one, in a new folder."""

    def __init__(self, folder, usr):
        self.dir, self.bin = Path(folder), usr / "usr/bin"
        self.started = []
        self.stats, self.textfile = self.dir / "stats", self.dir / "text/anything.prom"
        self.textfile.parent.mkdir()

    def start(self, name, *cmd):
        log = self.dir / f"{name}.log"
        with open(log, "w") as out:
            p = subprocess.Popen([str(c) for c in cmd], cwd=self.dir, stdin=subprocess.PIPE, stdout=out, stderr=out)
        self.started.append(p)
        return p, log

    def serve(self, name, path, *cmd):
        """The address at which it answers. Another process may take a free port first: then it gets another one."""
        for _ in range(5):
            at = f"127.0.0.1:{free_port()}"
            p, _ = self.start(name, *cmd, f"--web.listen-address={at}")
            wait_for(name, lambda: p.poll() is not None or answers(f"http://{at}{path}"))
            if p.poll() is None:
                return at
        raise AssertionError(f"{name} ends at once")

    def begin(self):
        self.daemon, _ = self.start("stats", BUILT / "examples/fake_stats", self.stats)
        wait_for("the statistics socket", self.stats.exists)
        _, log = self.start("export", BUILT / "scx_roost", "export", "--stats-path", self.stats,
                            "--listen", "127.0.0.1:0", "--textfile", self.textfile, "--interval", "0.5")
        self.exporter = wait_for("the exporter", lambda: re.search(r"http://(\S+)/metrics", log.read_text()))[1]
        self.node = self.serve("node", "/metrics", self.bin / "prometheus-node-exporter",
                               "--collector.disable-defaults", "--collector.textfile",
                               f"--collector.textfile.directory={self.textfile.parent}")
        job = (CONTRIB / "prometheus-scrape.yml").read_text()
        job = job.replace("127.0.0.1:10849", self.exporter).replace("scrape_interval: 15s", "scrape_interval: 3s")
        job = job.replace("scrape_timeout: 10s", "scrape_timeout: 3s").replace(ALERTS, str(CONTRIB / ALERTS))
        (self.dir / "prometheus.yml").write_text("global:\n  evaluation_interval: 1s\n" + job)
        self.prometheus = self.serve("prometheus", "/-/ready", self.bin / "prometheus",
                                     f"--config.file={self.dir}/prometheus.yml", f"--storage.tsdb.path={self.dir}/data")

    def end(self):
        for p in reversed(self.started):
            p.terminate()
        for p in self.started:
            p.stdin.close()
            try:
                p.wait(timeout=10)
            except subprocess.TimeoutExpired:
                p.kill()
                p.wait()

    def last_words(self):
        for log in sorted(self.dir.glob("*.log")):
            for line in log.read_text(errors="replace").splitlines()[-5:]:
                print(f"# {log.stem}: {line}")

    def asked(self, url):
        """None if there is no answer now."""
        try:
            return json.loads(get(url)[1])
        except urllib.error.HTTPError as e:
            # Plain text, before it is ready and when it is overloaded.
            if e.code == 503:
                return None
            raise AssertionError(f"{url}: {json.loads(e.read())['error']}") from None
        except OSError:
            return None

    def api(self, path, **args):
        url = f"http://{self.prometheus}/api/v1/{path}?{urllib.parse.urlencode(args)}"
        return wait_for(f"an answer to {path} {args}", lambda: self.asked(url))["data"]

    def query(self, expr):
        return self.api("query", query=expr)["result"]

    def await_query(self, what, expr):
        wait_for(f"{what} ({expr})", lambda: self.query(expr))

    def promtool(self, *args, **options):
        p = subprocess.run([self.bin / "promtool", *args], cwd=CONTRIB, text=True, stdout=subprocess.PIPE,
                           stderr=subprocess.STDOUT, **options)
        assert p.returncode == 0, f"promtool {' '.join(args)}: {p.stdout}"


def all_of_it_starts(setup):
    setup.begin()


def strict_openmetrics(setup):
    """The Python client's parser accepts all our output and reads the values that our encoder wrote."""
    from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse
    kind, text = get(f"http://{setup.exporter}/metrics", OPEN)
    assert kind == OPEN + "; charset=utf-8", kind
    families = {f.name: f for f in parse(text)}
    assert len(families) > 200, len(families)
    for family in families.values():
        assert family.type in ("counter", "gauge", "histogram", "info") and family.documentation, family
    latency = families["roost_wakeup_latency_seconds"]
    assert (latency.type, latency.unit) == ("histogram", "seconds"), latency
    assert families["roost_cpu_hertz"].samples[0].labels == {"cpu": "0", "core": "0", "llc": "0", "node": "0"}
    (up,) = families["roost_up"].samples
    assert up.value == 1


def classic_format(setup):
    """promtool reads it as node_exporter does, and finds nothing to complain about."""
    once = [BUILT / "scx_roost", "export", "--once", "--stats-path", setup.stats]
    printed = subprocess.run(once, text=True, check=True, stdout=subprocess.PIPE).stdout
    for text in printed, get(f"http://{setup.exporter}/metrics")[1], setup.textfile.read_text():
        setup.promtool("check", "metrics", input=text)


def node_exporter_reads_the_textfile(setup):
    text = get(f"http://{setup.node}/metrics")[1]
    assert "\nnode_textfile_scrape_error 0\n" in text and "\nroost_up 1\n" in text, text[:2000]
    assert 'roost_wakeup_latency_seconds_bucket{arm="games",le="+Inf"}' in text
    (written,) = re.findall(r"^roost_textfile_timestamp_seconds (\S+)$", text, re.MULTILINE)
    assert 0 <= time.time() - float(written) < PATIENCE, written


def alerts_are_what_they_are_meant_to_be(setup):
    setup.promtool("check", "config", "prometheus-scrape.yml")
    setup.promtool("test", "rules", "prometheus-alerts.test.yml")


def the_collectors_receiver_has_a_good_job(setup):
    """What the guide gives OpenTelemetry's receiver is a configuration of Prometheus."""
    guide = (TOP / "docs/guides/monitoring.md").read_text()
    (config,) = re.findall(r"^    config:\n((?: {6}.*\n)+)", guide, re.MULTILINE)
    job = setup.dir / "receiver.yml"
    job.write_text(textwrap.dedent(config))
    setup.promtool("check", "config", str(job))


def prometheus_scrapes(setup):
    setup.await_query("a scrape by Prometheus", "roost_up == 1")
    wait_for("a scrape without an error", lambda: all(target["health"] == "up" and not target["lastError"]
                                                      for target in setup.api("targets")["activeTargets"]))
    # Enough samples for a rate.
    setup.await_query("a rate", 'rate(roost_sis_prev_total{arm="games"}[15s]) > 500')
    wait_for("types", lambda: setup.api("metadata", metric="roost_wakeup_latency_seconds"))
    (latency,) = setup.api("metadata", metric="roost_wakeup_latency_seconds")["roost_wakeup_latency_seconds"]
    assert (latency["type"], latency["unit"]) == ("histogram", "seconds"), latency


def prometheus_evaluates_the_alerts(setup):
    def evaluated():
        rules = [r for group in setup.api("rules")["groups"] for r in group["rules"]]
        return rules and all(r["health"] != "unknown" for r in rules) and rules
    for rule in wait_for("the alerts", evaluated):
        assert rule["health"] == "ok", rule
        # 'up' is not a metric of scx_roost; Prometheus does not scrape the textfile here.
        for metric in set(re.findall(r"\b(?:roost_\w+|up)\b", rule["query"])) - {"roost_textfile_timestamp_seconds"}:
            setup.await_query(f"a metric of {rule['name']}", metric)


def expressions(dashboard):
    for panel in dashboard["panels"]:
        for target in panel.get("targets", []):
            yield f"panel '{panel['title']}'", target["expr"]
    for annotation in dashboard["annotations"]["list"]:
        yield None, annotation["expr"]
    for variable in dashboard["templating"]["list"]:
        if variable["type"] == "query":
            series, label = re.fullmatch(r"label_values\((.*), (\w+)\)", variable["definition"]).groups()
            yield f"variable {variable['name']}", f"count by ({label}) ({series})"


def the_dashboard_shows_data(setup):
    """Each of its queries has an answer; that of an annotation may be empty."""
    asked = 0
    for where, expr in expressions(json.loads((CONTRIB / "grafana-dashboard.json").read_text())):
        for name, value in VARIABLES.items():
            expr = expr.replace(name, value)
        assert "$" not in expr, expr
        if where:
            setup.await_query(where, expr)
        else:
            setup.query(expr)
        asked += 1
    assert asked > 80, asked


def the_dashboard_is_one(_):
    """What Grafana requires of an imported file. Debian has no Grafana to test with."""
    sources = []
    dashboard = json.loads((CONTRIB / "grafana-dashboard.json").read_text(),
                           object_hook=lambda part: sources.append(part.get("datasource")) or part)
    chosen = {"type": "prometheus", "uid": "${datasource}"}
    assert all(source in (None, chosen) for source in sources), "a query goes to another source than the chosen one"
    assert re.fullmatch(r"[a-zA-Z0-9_-]{1,40}", dashboard["uid"]) and dashboard["schemaVersion"] >= 36
    assert "id" not in dashboard, "an id is of one Grafana"
    names = [v["name"] for v in dashboard["templating"]["list"]]
    assert names[0] == "datasource" and dashboard["templating"]["list"][0]["type"] == "datasource"
    ids, taken = set(), {}
    for panel in dashboard["panels"]:
        title, at = panel["title"], panel["gridPos"]
        assert panel["id"] not in ids, f"panel '{title}': its id is another's"
        ids.add(panel["id"])
        assert 0 <= at["x"] and at["x"] + at["w"] <= WIDTH and min(at["w"], at["h"]) > 0, f"panel '{title}': {at}"
        for cell in ((x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])):
            other = taken.setdefault(cell, title)
            assert other == title, f"panels '{title}' and '{other}' lie upon each other"
        targets = panel.get("targets", [])
        assert bool(targets) == (panel["type"] != "row"), f"panel '{title}'"
        assert len({t["refId"] for t in targets}) == len(targets), f"panel '{title}': a refId twice"
    used = set(re.findall(r"\$\{?([a-z]\w*)", json.dumps(dashboard)))
    assert used == set(names), f"variables {used} are used, {names} are there"


def lost(before, after, path=""):
    """The parts of `before` that `after` lacks, except empty ones."""
    if isinstance(before, dict) and isinstance(after, dict):
        for key, value in before.items():
            if key in after:
                yield from lost(value, after[key], f"{path}.{key}")
            elif value not in (None, [], {}) and key not in NOT_IN_SCHEMA:
                yield f"{path}.{key}: {value}"
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for i, (one, other) in enumerate(zip(before, after)):
            yield from lost(one, other, f"{path}[{i}]")
    elif before != after:
        yield f"{path}: {before} and {after}"


def the_dashboard_is_of_grafanas_schema(_):
    """Read into Grafana's model, and written again, it is unchanged: an unknown field would be lost."""
    from grafana_foundation_sdk.cog.encoder import JSONEncoder
    from grafana_foundation_sdk.cog.plugins import register_default_plugins
    from grafana_foundation_sdk.models.dashboard import Dashboard
    register_default_plugins()
    before = json.loads((CONTRIB / "grafana-dashboard.json").read_text())
    after = json.loads(json.dumps(Dashboard.from_json(before), cls=JSONEncoder))
    gone = list(lost(before, after))
    assert not gone, "; ".join(gone)


def the_end_of_the_daemon_is_reported(setup):
    """Runs last: it ends the statistics."""
    setup.daemon.stdin.close()
    setup.daemon.wait(timeout=10)
    setup.await_query("the end of the statistics", "roost_up == 0")
    assert not setup.query("roost_running"), "numbers of a scheduler that is gone"
    setup.await_query("the alert", 'ALERTS{alertname="RoostStopped"}')
    assert not setup.query('ALERTS{alertname="RoostDaemonGone"}'), "a planned stop is no failure"
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(setup.stats))
    setup.await_query("the alert about a failure", 'ALERTS{alertname="RoostDaemonGone"}')


CHECKS = [alerts_are_what_they_are_meant_to_be, the_collectors_receiver_has_a_good_job, the_dashboard_is_one,
          all_of_it_starts, strict_openmetrics, classic_format, node_exporter_reads_the_textfile, prometheus_scrapes,
          prometheus_evaluates_the_alerts, the_dashboard_shows_data, the_end_of_the_daemon_is_reported]


def check(sums, setup, one):
    try:
        one(setup)
    # Whatever the error, the other checks are still useful.
    except Exception as e:
        sums.say(False, f"{one.__name__}: {type(e).__name__} {e}")
        setup.last_words()
    else:
        sums.say(True, one.__name__)


def check_by_sdk(sums, setup, require):
    one = the_dashboard_is_of_grafanas_schema
    try:
        sys.path.insert(0, str(sdk()))
    except (LabError, OSError) as e:
        sums.skip(f"{one.__name__}: {e}", require)
    else:
        check(sums, setup, one)


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--require", action="store_true", help="unavailable packages are a failure, not a skip")
    ap.add_argument("--sdk", action="store_true", help="also read the dashboard with Grafana's own model, from PyPI")
    args, sums = ap.parse_args(), Sums()
    try:
        usr = tools()
    # OSError: no apt-get; SubprocessError: a package that cannot be unpacked.
    except (LabError, OSError, subprocess.SubprocessError) as e:
        sums.skip(f"monitoring: {e}", args.require)
        return sums.end()
    sys.path.insert(0, str(usr / "usr/lib/python3/dist-packages"))
    os.environ["no_proxy"] = "127.0.0.1"
    with tempfile.TemporaryDirectory(prefix="roost-monitoring-") as folder:
        setup = Setup(folder, usr)
        try:
            if args.sdk:
                check_by_sdk(sums, setup, args.require)
            for one in CHECKS:
                check(sums, setup, one)
        finally:
            setup.end()
    return sums.end()


if __name__ == "__main__":
    sys.exit(main())
