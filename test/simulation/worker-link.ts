import { Leases } from "../../src/process/control/coordination/leases.ts";
import {
  limitHandlers,
  type SyncLimits,
} from "../../src/process/control/coordination/limit-handlers.ts";
import { Member } from "../../src/process/control/coordination/member.ts";
import { Link } from "../../src/process/link/link.ts";
import {
  jsonKinds,
  type ControlMessages,
  type CoordinationMessages,
  type LimitMessages,
} from "../../src/process/link/messages.ts";
import type { ByteChannel } from "../../src/process/link/outbox.ts";
import { limitStoreBounds } from "../../src/process/wiring/build-services.ts";
import { RemoteLimits } from "../../src/process/worker/coordination/limits/remote-limits.ts";
import type { LimitStore } from "../../src/store/store.ts";
import type { ProcessClock, VirtualTime } from "./virtual-time.ts";

export interface WorkerLinkOptions {
  readonly time: VirtualTime;
  /** Of the worker. */
  readonly clock: ProcessClock;
  /** Of control, which outlives the worker. */
  readonly controlClock: ProcessClock;
  /** Control decides with it. */
  readonly limits: SyncLimits;
  /** Of the next bytes, in one direction. */
  readonly delay: () => number;
}

type None = Record<never, never>;
type WorkerEnd = Link<CoordinationMessages, ControlMessages>;
type ControlEnd = Link<None, LimitMessages>;

/**
 * What a worker asks of control, as both do it: over the two ends of a real link, between which all
 * bytes are delayed, in their order. Bytes to control arrive even if the worker has ended, which
 * itself hears nothing more.
 */
export function linkedLimits({ time, delay, ...ends }: WorkerLinkOptions): LimitStore {
  const wayTo = (
    reader: () => WorkerEnd | ControlEnd,
    readersTime: Pick<VirtualTime, "schedule">,
  ): ByteChannel => {
    let lastMs = 0;
    return {
      write(bytes) {
        const copy = bytes.slice();
        lastMs = Math.max(lastMs, time.now + delay());
        readersTime.schedule(() => reader().received(copy), lastMs - time.now);
        return bytes.length;
      },
      close: () => undefined,
    };
  };
  const opened = Promise.withResolvers<void>();
  const common = { hello: undefined, onLost: () => undefined };
  const worker: WorkerEnd = new Link<CoordinationMessages, ControlMessages>({
    ...common,
    channel: wayTo(() => control, time),
    clock: ends.clock,
    later: (run) => ends.clock.schedule(run, 0),
    jsonKinds,
    handlers: {
      "keys.reload": () => 0,
      "config.changed": () => undefined,
      "places.lent": () => undefined,
      "places.scarce": () => undefined,
      "places.plenty": () => undefined,
      "health.changed": () => undefined,
      state: () => undefined,
      replaced: () => undefined,
      "metrics.read": () => "",
      "coordination.report": () => ({}),
      "limits.yours": () => undefined,
      "limits.seen": () => [],
      "limits.used": () => undefined,
      "limits.leased": () => undefined,
      "limits.recall": () => undefined,
    },
    onOpen: () => opened.resolve(),
  });
  // Each decision is checked, so nothing is leased.
  const store = {
    slot: 0,
    lease: () => undefined,
    open: () => undefined,
    giveBack: () => undefined,
  };
  const leases = new Leases({ store, now: () => time.now, workers: () => 2 });
  const member = new Member();
  member.admit();
  const control: ControlEnd = new Link<None, LimitMessages>({
    ...common,
    channel: wayTo(() => worker, ends.clock),
    clock: ends.controlClock,
    later: (run) => ends.controlClock.schedule(run, 0),
    handlers: limitHandlers(
      ends.limits,
      leases.ofWorker(() => undefined),
      member,
    ),
    onOpen: () => undefined,
  });
  return new RemoteLimits(
    {
      async ask(kind, body, timeoutMs) {
        await opened.promise;
        return worker.ask(kind, body, timeoutMs);
      },
      tell: (kind, body) => worker.tell(kind, body),
      tellSoon: (kind, body) => worker.tellSoon(kind, body),
      // Control decides from the start.
      join: (part) => void part.report(),
    },
    { clock: ends.clock, random: () => 0.5, ...limitStoreBounds },
  );
}
