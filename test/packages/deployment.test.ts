import { expect, test } from "bun:test";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parse, stringify } from "yaml";
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

const secrets = {
  SLUICE_DATABASE_URL: "postgres://sluice:secret@postgres/sluice",
  SLUICE_VALKEY_URL: "valkey://default:secret@valkey",
  SLUICE_PEPPER: "a pepper for tests that is long enough",
};

interface Scraping {
  readonly scrape_configs: readonly {
    readonly static_configs: readonly { readonly targets: readonly string[] }[];
  }[];
}

test("the gateways of compose.yaml have a valid configuration, and answer their Prometheus", () => {
  const name = "compose/sluice/sluice.yaml";
  const parsed = parseConfig(read(name), { name, env: secrets });
  const { scrape_configs } = parse(read("compose/prometheus.yaml")) as Scraping;
  const targets = scrape_configs.flatMap(({ static_configs }) =>
    static_configs.flatMap((each) => each.targets),
  );
  expect(targets).toEqual(["sluice-1:8081", "sluice-2:8081"]);
  expect(parsed).toMatchObject({
    ok: true,
    config: { admin: { hosts: ["sluice-1", "sluice-2"] } },
  });
});

testNeeding("promtool")("the Prometheus of compose.yaml has one too", async () => {
  const files = {
    "prometheus.yaml": read("compose/prometheus.yaml"),
    "alerts.yaml": read("prometheus/alerts.yaml"),
  };
  expect(await promtool(["check", "config", "prometheus.yaml"], files)).toBeUndefined();
});

testNeeding("nginx")("the nginx of compose.yaml has one too", () => {
  const folder = mkdtempSync(join(tmpdir(), "sluice-nginx-"));
  try {
    // Names and their resolver exist only among the services, and nginx resolves them at its start.
    const config = read("compose/nginx.conf")
      .replace(/resolver [^;]*;/, "")
      .replaceAll(/sluice-\d:8080 resolve/g, "127.0.0.1:8080")
      .replace("http {", `pid ${folder}/pid; error_log stderr; http { access_log off;`);
    writeFileSync(join(folder, "nginx.conf"), config);
    const check = ["nginx", "-t", "-p", folder, "-e", "stderr", "-c", join(folder, "nginx.conf")];
    const { stderr } = Bun.spawnSync(check);
    expect(stderr.toString()).toContain("test is successful");
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});

interface ChartValues {
  readonly config: Readonly<Record<string, unknown>>;
  readonly terminationGracePeriodSeconds: number;
}

test("the values of the chart have a valid configuration that drains in time", () => {
  const values = parse(read("helm/sluice/values.yaml")) as ChartValues;
  const parsed = parseConfig(stringify(values.config), { name: "values.yaml", env: secrets });
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.problems));
  const { preStopMs, drainTimeoutMs } = parsed.config.shutdown;
  expect(values.terminationGracePeriodSeconds * 1000).toBeGreaterThan(preStopMs + drainTimeoutMs);
  expect(parsed.config.storage).toMatchObject({ backend: "postgres" });
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
