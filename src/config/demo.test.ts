import { expect, test } from "bun:test";
import { upstreamOfKind } from "../../test/support/kind-settings.ts";
import { demoConfigText } from "./demo.ts";
import { parseConfig } from "./load.ts";
import { priceNotices } from "./prices/effective-prices.ts";
import { checkWarnings } from "./problems/warnings.ts";

function readDemo(dataDir: string) {
  const text = demoConfigText({
    simulator: {
      endpoint: "http://127.0.0.1:9000",
      region: "us-east-1",
      accessKeyId: "ID",
      secretAccessKey: "SECRET",
    },
    dataDir,
    listenData: "127.0.0.1:8080",
    listenAdmin: "[::1]:0",
  });
  const result = parseConfig(text, { name: "demo", env: {} });
  if (!result.ok) throw new Error(JSON.stringify(result.problems));
  return result.config;
}

test("the demo offers every alias on every host through one upstream", () => {
  const config = readDemo("./data");
  expect(config.environments).toHaveLength(1);
  const [environment] = config.environments;
  expect(environment?.name).toBe("local");
  expect(environment?.hosts).toEqual(["*"]);
  const kinds = [...(environment?.models.values() ?? [])].map(({ alias, kind }) => [alias, kind]);
  expect(Object.fromEntries(kinds)).toEqual({
    "alpha-sonnet-4": "chat",
    "alpha-haiku-3.5": "chat",
    "alpha-sonnet-3.5": "chat",
    "beta-3-70b": "chat",
    "beta-3-405b": "chat",
    "gamma-8x7b": "chat",
    "gamma-large": "chat",
    "embed-text-v2": "embedding",
  });
  expect(config.upstreams.get("simulator")).toMatchObject({
    kind: { name: "bedrock" },
    settings: {
      endpoint: "http://127.0.0.1:9000",
      region: "us-east-1",
      credentials: { source: "static", accessKeyId: "ID" },
    },
  });
  const aliases = kinds.filter(([, kind]) => kind === "chat").map(([alias]) => alias);
  const { models } = upstreamOfKind(config, "bedrock", "simulator").settings;
  for (const alias of aliases) {
    const settings = [...(models.get(alias ?? "")?.values() ?? [])];
    expect(settings.map(({ dropUnsupported }) => dropUnsupported)).not.toContain(true);
  }
  expect(config.listen.admin).toEqual({ hostname: "::1", port: 0 });
});

test("the demo has no model that had ended when it was written, and allows each its full output", () => {
  expect(checkWarnings(readDemo("./data"), Date.parse("2026-11-23"))).toEqual([]);
});

test("all targets of the demo have a price", () => {
  expect(priceNotices(readDemo("./data"), Date.now())).toEqual([]);
});

test("the demo takes a data directory with characters that YAML and placeholders reserve", () => {
  const config = readDemo('/tmp/a "b": ${HOME} #c');
  expect(config.dataDir).toBe('/tmp/a "b": ${HOME} #c');
  expect(config.storage.path).toBe('/tmp/a "b": ${HOME} #c/sluice.db');
});
