import { expect, test } from "bun:test";
import { AdminFixture, auditor } from "../../../test/support/admin-fixture.ts";
import type { ProcessFacts } from "./process-status.ts";
import { statusSchema } from "../contract/processes.ts";

const facts: ProcessFacts = {
  pid: 4711,
  degraded: "limits are not shared",
  version: "1.2.3",
  startedAt: 0,
  residentBytes: 90_000_000,
  loopDelayLongestMs: 12.345,
  loopDelayP99Ms: 1.26,
  openCalls: 2,
  calls: 30,
  spoolBytes: 4096,
  waitingRows: 3,
  droppedLogLines: 4,
  keysGeneration: 7,
  configuredAt: 0,
};

test("each process is shown with what it said, one that is not there without", async () => {
  await using fixture = new AdminFixture();
  const now = fixture.clock.now();
  fixture.processes = [
    { number: 1, leads: true, notReady: undefined, facts: { ...facts, startedAt: now - 1_500 } },
    { number: 2, leads: false, notReady: "starting", facts: undefined },
  ];
  const { data } = statusSchema.parse((await fixture.result("getStatus")).body);
  const [one, other] = data;
  expect(one).toEqual({
    process: 1,
    leads: true,
    ready: true,
    not_ready: null,
    degraded: "limits are not shared",
    pid: 4711,
    version: "1.2.3",
    started_at: new Date(now - 1_500).toISOString(),
    age_ms: 1_500,
    open_calls: 2,
    calls: 30,
    resident_bytes: 90_000_000,
    loop_delay_longest_ms: 12.3,
    loop_delay_p99_ms: 1.3,
    spool_bytes: 4096,
    waiting_rows: 3,
    dropped_log_lines: 4,
    keys_generation: 7,
    configured_at: "1970-01-01T00:00:00.000Z",
  });
  expect(other).toMatchObject({
    process: 2,
    leads: false,
    ready: false,
    not_ready: "starting",
    pid: null,
    age_ms: null,
    configured_at: null,
  });
});

test("processes are the operators' own", async () => {
  await using fixture = new AdminFixture();
  const { id, roles } = fixture.operation("getStatus");
  expect({ id, roles }).toEqual({ id: "getStatus", roles: ["operator"] });
  expect(roles).not.toContain(auditor.role);
  const bound = { ...auditor, role: "operator" as const, accountId: "acc_1" };
  expect(fixture.result("getStatus", { as: bound })).rejects.toMatchObject({
    code: "not_permitted",
  });
});
