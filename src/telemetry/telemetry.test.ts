import { expect, test } from "bun:test";
import { generateApiKey } from "../domain/keys/api-key.ts";
import { internalError } from "../domain/errors/gateway-error.ts";
import { UpstreamFailure } from "../domain/errors/upstream-failure.ts";
import { recordOf } from "../../test/contracts/usage-store-contract.ts";
import { recordedTelemetry } from "../../test/support/recorded-telemetry.ts";
import { describeError } from "./log/logger.ts";

test("a finished call is counted by model, status and outcome, with its tokens", () => {
  const { events, page } = recordedTelemetry();
  events.callEnded(recordOf("req_1"));
  events.callEnded(recordOf("req_2"));
  const text = page();
  const labels = 'environment="production",model="alpha-sonnet-4",dialect="chat",status="200"';
  expect(text).toContain(`sluice_calls_total{${labels},outcome="completed"} 2`);
  const input = 'model="alpha-sonnet-4",direction="input",source="upstream"';
  expect(text).toContain(`sluice_tokens_total{${input}} 20`);
  expect(text).toContain('sluice_call_duration_seconds_count{model="alpha-sonnet-4"');
  expect(text).toContain("sluice_open_requests 3");
  expect(text).toContain("sluice_ledger_queue_rows 4");
});

test("lines below the level are not written, and off writes none", () => {
  const quiet = recordedTelemetry({ logLevel: "warn" });
  quiet.events.callEnded(recordOf("req_1"));
  expect(quiet.lines).toEqual([]);
  quiet.events.configRefused("line 3: no");
  expect(quiet.lines).toHaveLength(1);
  const off = recordedTelemetry({ logLevel: "off" });
  off.events.configRefused("line 3: no");
  expect(off.lines).toEqual([]);
});

test("a text line stays one line for any field values", () => {
  const { events, lines } = recordedTelemetry({ logFormat: "text" });
  events.configRefused("first\nsecond line");
  expect(lines).toHaveLength(1);
  expect(lines[0]).not.toContain("\n");
  expect(lines[0]).toContain('problems="first\\nsecond line"');
});

test("an internal error is logged with its causes and the id sent to the caller", () => {
  const { events, lines } = recordedTelemetry();
  const error = internalError(new Error("outer", { cause: new Error("inner") }));
  const common = { id: "req_9", method: "POST", route: "/v1/embeddings", status: 500 };
  events.requestHandled({ ...common, durationMs: 1, error });
  expect(JSON.parse(lines[0] ?? "")).toMatchObject({ level: "error", id: "req_9" });
  expect(lines[0]).toContain("outer");
  expect(lines[0]).toContain("inner");
});

test("faults of the operator are errors, those of the provider warnings", () => {
  const { events, lines } = recordedTelemetry();
  const failure = (kind: "bad-credential" | "throttled"): UpstreamFailure =>
    new UpstreamFailure({ kind, message: "m" });
  events.attemptFailed("req_1", "up/model", failure("bad-credential"));
  events.attemptFailed("req_1", "up/model", failure("throttled"));
  expect(lines.map((line) => (JSON.parse(line) as { level: string }).level)).toEqual([
    "error",
    "warn",
  ]);
});

test("messages of an upstream are logged only when configured", () => {
  const failure = new UpstreamFailure({ kind: "invalid-request", message: "bad input: my secret" });
  for (const isAsked of [false, true]) {
    const { events, lines } = recordedTelemetry({ logsUpstreamMessages: isAsked });
    events.attemptFailed("req_1", "up/model", failure);
    expect(lines[0]?.includes("my secret")).toBe(isAsked);
    expect(JSON.parse(lines[0] ?? "")).toMatchObject({ message: "attempt failed", level: "debug" });
  }
});

test("keys and bearer tokens are removed from described errors", () => {
  const { text } = generateApiKey((target) => crypto.getRandomValues(target));
  const described = describeError(new Error(`refused ${text} and Bearer abc.def-ghi`));
  expect(described).not.toContain(text);
  expect(described).not.toContain("abc.def");
  expect(described).toContain("refused [key]");
});
