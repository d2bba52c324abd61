import { expect, test } from "bun:test";
import { AdminFixture, holderOf } from "../../../test/support/admin-fixture.ts";
import type { ProcessRow } from "../../store/process-row.ts";
import { changedKeySchema } from "../contract/keys.ts";
import { overviewSchema } from "../contract/live.ts";
import { processesSchema } from "../contract/processes.ts";

function rowOf(id: string, more: Partial<ProcessRow> = {}): ProcessRow {
  return {
    id,
    name: "host",
    number: 1,
    version: "1.2.3",
    startedAt: 0,
    configuredAt: 0,
    configDigest: "abc",
    limitsDigest: "def",
    pepperMarks: "one,two",
    keysEpoch: 7,
    chargesAs: undefined,
    ingest: "none",
    adminUrl: "http://127.0.0.1:8081",
    notReady: undefined,
    degraded: undefined,
    silentMs: 0,
    ...more,
  };
}

test("gateways are shown with their signs, and different configurations are reported", async () => {
  await using fixture = new AdminFixture();
  const second = { name: "other", number: 2, adminUrl: "" };
  const differing = { ...second, configDigest: "def", notReady: "starting", keysEpoch: undefined };
  fixture.processRows = [rowOf("mac_a"), rowOf("mac_b", { ...differing, silentMs: 11_000 })];
  const list = () => fixture.run(processesSchema, "listProcesses");
  const { data, config_differs: differs } = await list();
  expect(data).toMatchObject([
    { id: "mac_a", name: "host", number: 1, live: true, ready: true, not_ready: null },
    { id: "mac_b", name: "other", number: 2, live: false, ready: false, not_ready: "starting" },
  ]);
  expect(data.map((row) => row.keys_epoch)).toEqual([7, null]);
  expect(data.map((row) => row.admin_url)).toEqual(["http://127.0.0.1:8081", ""]);
  expect(data[0]?.configured_at).toBe("1970-01-01T00:00:00.000Z");
  expect(differs).toBe(false);
  fixture.processRows = [rowOf("mac_a"), rowOf("mac_b", differing)];
  expect((await list()).config_differs).toBe(true);
  const holder = holderOf("acct_a");
  expect((await fixture.refusal("listProcesses", { as: holder })).status).toBe(403);
});

test("a gateway that lacks something is told, and one that is silent, unless it was replaced", async () => {
  await using fixture = new AdminFixture();
  const degraded = "limits.store does not answer; limits are not shared";
  const silent = rowOf("mac_b@b/1-2", { name: "b", degraded, silentMs: 11_000 });
  const replaced = rowOf("mac_c@c/1-3", { name: "c", silentMs: 11_000 });
  const next = rowOf("mac_c@c/1-4", { name: "c" });
  fixture.processRows = [rowOf("mac_a@host/1-1", { degraded }), silent, replaced, next];
  const { data, warnings } = await fixture.run(processesSchema, "listProcesses");
  expect(data.map((row) => row.degraded)).toEqual([degraded, degraded, null, null]);
  expect(warnings).toEqual([
    `process 1 of host is degraded: ${degraded}.`,
    "process 1 of b gives no sign for 11 s. Look at `sluice status` on its machine.",
  ]);
});

test("gateways of one host are told apart by their admin addresses", async () => {
  await using fixture = new AdminFixture();
  const degraded = "limits.store does not answer";
  const adminUrl = "http://127.0.0.1:9081";
  fixture.processRows = [
    rowOf("mac_a@host/1-1", { degraded }),
    rowOf("mac_b@host/1-2", { degraded, adminUrl }),
    rowOf("mac_b@host/2-3", { number: 2, degraded, adminUrl }),
  ];
  const { data, warnings } = await fixture.run(processesSchema, "listProcesses");
  expect(warnings).toEqual([
    `process 1 of host (http://127.0.0.1:8081) is degraded: ${degraded}.`,
    `process 1 of host (${adminUrl}) is degraded: ${degraded}.`,
    `process 2 of host is degraded: ${degraded}.`,
  ]);
  expect(data.map(({ name }) => name)).toEqual(["host", "host", "host"]);
  const { needs } = await fixture.run(overviewSchema, "getOverview");
  expect(needs.map(({ subject }) => subject.name)).toContain(`process 1 of host (${adminUrl})`);
});

test("a revocation tells how many gateways apply it, also when it is repeated", async () => {
  await using fixture = new AdminFixture();
  const { key } = await fixture.issue((await fixture.application("owner")).id);
  const revoke = () => fixture.run(changedKeySchema, "revokeKey", { id: key.id });
  fixture.keysApplied = { processes: 2, of: 3, silent: 1 };
  expect((await revoke()).applied).toEqual({ processes: 2, of: 3, silent: 1 });
  fixture.keysApplied = { processes: 3, of: 3, silent: 0 };
  expect((await revoke()).applied).toEqual({ processes: 3, of: 3, silent: 0 });
  const other = await fixture.issue(key.applicationId);
  const stopped = await fixture.run(changedKeySchema, "updateKey", {
    id: other.key.id,
    body: { revision: other.key.revision, disabled: true },
  });
  expect(stopped.applied).toEqual({ processes: 3, of: 3, silent: 0 });
  const again = await fixture.run(changedKeySchema, "updateKey", {
    id: other.key.id,
    body: { revision: stopped.revision, disabled: true },
  });
  expect(again).toEqual(stopped);
});
