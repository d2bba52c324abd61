import { expect, test } from "bun:test";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parse } from "yaml";
import { parseConfig } from "../../src/config/load.ts";
import { testNeeding } from "../support/requirement.ts";
import { promtool } from "../telemetry/promtool.ts";

const deploy = fileURLToPath(new URL("../../deploy", import.meta.url));
const read = (path: string): string => readFileSync(join(deploy, path), "utf8");

interface Compose {
  readonly services: Readonly<Record<string, { readonly volumes?: readonly string[] }>>;
}

test("every file that a service of compose.yaml mounts is there", () => {
  const { services } = parse(read("compose.yaml")) as Compose;
  const mounted = Object.values(services)
    .flatMap(({ volumes = [] }) => volumes)
    .flatMap((volume) => /^\.\/[^:]+/.exec(volume)?.[0] ?? []);
  expect(mounted.length).toBeGreaterThan(3);
  expect(mounted.filter((path) => !existsSync(join(deploy, path)))).toEqual([]);
});

interface Scraping {
  readonly scrape_configs: readonly {
    readonly static_configs: readonly { readonly targets: readonly string[] }[];
  }[];
}

test("the gateway of compose.yaml has a valid configuration, and answers its Prometheus", () => {
  const name = "compose/sluice/sluice.yaml";
  const parsed = parseConfig(read(name), { name, env: {} });
  const { scrape_configs } = parse(read("compose/prometheus.yaml")) as Scraping;
  const targets = scrape_configs.flatMap(({ static_configs }) =>
    static_configs.flatMap((each) => each.targets),
  );
  expect(targets).toEqual(["sluice:8081"]);
  expect(parsed).toMatchObject({ ok: true, config: { admin: { hosts: ["sluice"] } } });
});

testNeeding("promtool")("the Prometheus of compose.yaml has one too", async () => {
  const files = {
    "prometheus.yaml": read("compose/prometheus.yaml"),
    "alerts.yaml": read("prometheus/alerts.yaml"),
  };
  expect(await promtool(["check", "config", "prometheus.yaml"], files)).toBeUndefined();
});

testNeeding("systemd-analyze")("systemd knows every setting of the unit", async () => {
  const folder = mkdtempSync(join(tmpdir(), "sluice-unit-"));
  try {
    const unit = join(folder, "sluice.service");
    // The program must exist.
    await Bun.write(
      unit,
      read("systemd/sluice.service").replace("/usr/local/bin/sluice", "/bin/true"),
    );
    const { stdout, stderr } = Bun.spawnSync(["systemd-analyze", "verify", "--man=no", unit]);
    expect(stdout.toString() + stderr.toString()).toBe("");
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});
