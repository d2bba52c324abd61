import { expect, test } from "bun:test";
import { parseConfig } from "./load.ts";
import { type SettingInUse, settingsInUse } from "./effective-settings.ts";

const env = { KEY: "canary-env-key", REGION: "canary-region", LIMIT: "8MiB", PORT: "9090" };

/** Every credential in it contains `canary`. */
const file = `
listen: { data: "127.0.0.1:\${PORT}" }
storage: { url: "postgres://sluice:canary@db.example/sluice?password=canary" }
limits: { store: "valkey://user:canary@limits.example:6379/0" }
http:
  body_limit: \${LIMIT}
auth: { peppers: [canary-0123456789abcdef0123456789abcdef, "\${KEY}-0123456789abcdef0123456789abcdef"] }
admin:
  bootstrap_token: canary-0123456789
telemetry:
  otlp:
    endpoint: http://collector.example:4318/canary
    headers: { authorization: Bearer canary }
upstreams:
  east:
    kind: openai
    base_url: http://models.example/v1
    api_key: canary
    headers: { x-api-key: canary }
    query: { key: canary }
  west:
    kind: bedrock
    region: us-east-1
    access_key_id: AKIAIOSFODNN7EXAMPLE
    secret_access_key: canary
    session_token: canary
models:
  small:
    kind: chat
    context_window: 8192
    targets: [{ model: "m-\${REGION}", upstream: east }]
plans:
  pilot: { tokens_per_minute: 7, requests_per_minute: 5 }
environments:
  - { name: production, hosts: ["*"], models: ["*"] }
ledger: { events: { webhook: { url: "https://hooks.example/canary/canary", secret: whsec_canaryAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA } } }
`;

function inUse(text: string, start = text, given = {}): ReadonlyMap<string, SettingInUse> {
  return new Map(
    settingsInUse(text, start, { env, given }).map((setting) => [setting.key, setting]),
  );
}

test("the file of these tests is accepted", () => {
  expect(parseConfig(file, { name: "test", env })).toMatchObject({ ok: true });
});

test("no secret of the file or of the environment is shown", () => {
  const shown = JSON.stringify([...inUse(file).values()].map(({ value }) => value));
  expect(shown).not.toContain("canary");
  expect(inUse(file).get("upstreams.west.secret_access_key")?.value).toBe("[redacted]");
  expect(inUse(file).get("storage.url")?.value).toBe(
    "postgres://[redacted]@db.example/sluice?[redacted]",
  );
  expect(inUse(file).get("telemetry.otlp.endpoint")?.value).toBe(
    "http://collector.example:4318/[redacted]",
  );
  expect(inUse(file).get("ledger.events.webhook.url")?.value).toBe(
    "https://hooks.example/[redacted]",
  );
});

test("each value comes from the file, a variable, the command line or the default", () => {
  const settings = inUse(file, file, { "listen.admin": "127.0.0.1:7000" });
  expect(settings.get("upstreams.east.base_url")).toMatchObject({
    value: "http://models.example/v1",
    source: "file",
    line: 17,
    takesEffect: "reload",
  });
  expect(settings.get("http.body_limit")).toMatchObject({
    value: "8MiB",
    source: "environment",
    line: 6,
    variables: ["LIMIT"],
  });
  expect(settings.get("listen.data")?.value).toBe("127.0.0.1:9090");
  // It may be a secret.
  expect(settings.get("models.small.targets[0].model")).toMatchObject({
    value: "m-${REGION}",
    variables: ["REGION"],
  });
  expect(settings.get("listen.admin")).toMatchObject({
    value: "127.0.0.1:7000",
    source: "command_line",
    line: undefined,
  });
  expect(settings.get("http.idle_timeout")).toMatchObject({
    source: "default",
    line: undefined,
    takesEffect: "restart",
    isPending: false,
  });
  expect(settings.get("environments[0].models")?.value).toEqual(["*"]);
});

test("plans of the file keep the default values that it does not write", () => {
  const settings = inUse(file);
  expect(settings.get("plans.pilot.tokens_per_minute")).toMatchObject({
    value: 7,
    source: "file",
  });
  expect(settings.get("plans.pro.tokens_per_minute")).toMatchObject({
    value: 2_000_000,
    source: "default",
  });
});

test("a setting that waits for a restart has the value in use, and says that it waits", () => {
  const next = file
    .replace('"127.0.0.1:${PORT}"', '"127.0.0.1:9999"')
    .replace("requests_per_minute: 5", "requests_per_minute: 6");
  const settings = inUse(next, file);
  expect(settings.get("listen.data")).toMatchObject({ value: "127.0.0.1:9090", isPending: true });
  expect(settings.get("plans.pilot.requests_per_minute")).toMatchObject({
    value: 6,
    isPending: false,
  });
});

test("a restart setting that was added, moved or removed since waits at the place of the latest file", () => {
  const moved = inUse(`# A line more.\n${file}`, file);
  expect(moved.get("listen.data")).toMatchObject({ line: 3, isPending: false });
  const secret = inUse(file.replace("canary-0123456789\n", "canary-9876543210\n"), file);
  expect(secret.get("admin.bootstrap_token")).toMatchObject({ isPending: true });
  const withUrl = file.replace("\nadmin:", "\nadmin:\n  public_url: https://console.example.com");
  expect(inUse(withUrl, file).get("admin.public_url")).toMatchObject({
    value: null,
    source: "file",
    line: 9,
    isPending: true,
  });
  expect(inUse(file, withUrl).get("admin.public_url")).toMatchObject({
    value: "https://console.example.com",
    line: undefined,
    isPending: true,
  });
});
