import { expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { until } from "../../../test/support/ledger-truth-process.ts";
import { ManualClock } from "../../../test/support/manual-clock.ts";
import { Link } from "../link/link.ts";
import type { ControlMessages, WorkerMessages, WorkerState } from "../link/messages.ts";
import { listenAtSocket } from "../link/unix-socket.ts";
import { ownFacts } from "../own-facts.ts";
import { ControlLink } from "./control-link.ts";

test("a worker tells at once that it can serve, or cannot any more", async () => {
  const folder = mkdtempSync(join(tmpdir(), "sluice-link-"));
  const path = join(folder, "control.sock");
  // The clock does not move, so the state of each second is never due.
  const clock = new ManualClock();
  const told: (string | undefined)[] = [];
  const listener = listenAtSocket(path, (channel) => {
    const handlers = { state: (state: WorkerState) => void told.push(state.notReady) };
    const nothing = (): void => undefined;
    const ends = { hello: {}, onOpen: nothing, onLost: nothing };
    return new Link<ControlMessages, Pick<WorkerMessages, "state">>({
      ...ends,
      channel,
      clock,
      handlers,
    });
  });
  let notReady: string | undefined = "starting";
  const state = (): WorkerState => ({
    ...ownFacts(),
    number: 1,
    url: "",
    notReady,
    spool: undefined,
    startedAt: 0,
    waitingRows: 0,
    droppedLogLines: 0,
    configuredAt: 0,
  });
  const link = new ControlLink({
    number: 1,
    path,
    clock,
    state,
    whyNotReady: () => notReady,
    renderMetrics: () => "",
    reloadKeys: () => Promise.resolve(0),
    onConfig: () => undefined,
    onState: () => undefined,
    onLost: () => undefined,
    onBack: () => undefined,
  });
  await link.start();
  await until("the first is told", async () => told.length === 1);
  for (const [index, next] of [undefined, "the spool is full", undefined].entries()) {
    notReady = next;
    await until("it is told", async () => told.length === index + 2);
  }
  expect(told).toEqual(["starting", undefined, "the spool is full", undefined]);
  await link.stop();
  listener.stop();
  rmSync(folder, { recursive: true });
});
