import { expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import {
  FallibleStore,
  ledgerFlow,
  LedgerLog,
  TestFolder,
} from "../../test/support/ledger-fixtures.ts";
import { ManualClock } from "../../test/support/manual-clock.ts";
import { Ledger } from "../../test/support/whole-ledger.ts";

/** Opens and closes calls forever with the database unavailable, and prints each one. */
const busyProcess = (folder: string): string => `
  const { writeSync } = await import("node:fs");
  const support = ${JSON.stringify(join(import.meta.dir, "../../test/support"))};
  const { closedCall, openedCall, ledgerFlow, FallibleStore, LedgerLog } =
    await import(support + "/ledger-fixtures.ts");
  const { Ledger } = await import(support + "/whole-ledger.ts");
  const { ManualClock } = await import(support + "/manual-clock.ts");
  const { StorageUnavailable } =
    await import(${JSON.stringify(join(import.meta.dir, "../store/errors.ts"))});
  const store = new FallibleStore();
  store.refuse = () => new StorageUnavailable("gone");
  const settings = { ...ledgerFlow, segmentBytes: 8_000, sync: "group" };
  const options = { folder: ${JSON.stringify(folder)}, store, settings, atTurnEnd: setImmediate };
  const ledger = new Ledger({ ...options, clock: new ManualClock(), on: new LedgerLog() });
  ledger.start();
  for (let call = 0; ; call += 1) {
    await ledger.calls.open(openedCall("req_" + call));
    writeSync(1, "open " + call + "\\n");
    if (call % 3 > 0) {
      await ledger.calls.close(closedCall("req_" + call));
      writeSync(1, "closed " + call + "\\n");
    }
    if (call % 10 === 0) await Bun.sleep(1);
  }`;

for (const round of [1, 2, 3, 4, 5]) {
  test(`a killed process has lost no call that it printed (round ${round})`, async () => {
    using folder = new TestFolder();
    const spool = join(folder.path, "spool");
    const script = join(folder.path, "busy.ts");
    writeFileSync(script, busyProcess(spool));
    const busy = Bun.spawn([process.execPath, script], { stdout: "pipe", stderr: "inherit" });
    const decoder = new TextDecoder();
    let said = "";
    for await (const piece of busy.stdout) {
      said += decoder.decode(piece, { stream: true });
      // The process keeps writing while it is killed.
      if (said.length > 1_500 * round) busy.kill("SIGKILL");
    }
    await busy.exited;
    const store = new FallibleStore();
    const options = { settings: ledgerFlow, clock: new ManualClock(), on: new LedgerLog() };
    const ledger = new Ledger({ folder: spool, store, ...options });
    await ledger.flush();
    await ledger.shutDown();
    const lines = said.split("\n").slice(0, -1);
    expect(lines.length).toBeGreaterThan(100);
    for (const line of lines) {
      const [state, call] = line.split(" ");
      const outcome = store.rows.get(`req_${call}`)?.outcome;
      // One in three calls is never closed; the last of the others may have been cut off.
      const mayBeCut = state === "open" ? ["interrupted"] : [];
      const mayBeWhole = Number(call) % 3 > 0 ? ["completed"] : [];
      expect([...mayBeCut, ...mayBeWhole]).toContain(outcome ?? "missing");
    }
  });
}
