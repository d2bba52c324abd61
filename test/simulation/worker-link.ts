import {
  limitHandlers,
  type DecidingLimits,
} from "../../src/process/control/coordination/limit-handlers.ts";
import { Link } from "../../src/process/link/link.ts";
import {
  jsonKinds,
  type CoordinationMessages,
  type LimitMessages,
} from "../../src/process/link/messages.ts";
import type { ByteChannel } from "../../src/process/link/outbox.ts";
import { RemoteLimits } from "../../src/process/worker/coordination/remote-limits.ts";
import type { LimitStore } from "../../src/store/store.ts";
import type { ProcessClock, VirtualTime } from "./virtual-time.ts";

export interface WorkerLinkOptions {
  readonly time: VirtualTime;
  /** Of the worker. */
  readonly clock: ProcessClock;
  /** Of control, which outlives the worker. */
  readonly controlClock: ProcessClock;
  /** Control decides with it. */
  readonly limits: DecidingLimits;
  /** Of the next bytes, in one direction. */
  readonly delay: () => number;
}

type None = Record<never, never>;
type WorkerEnd = Link<CoordinationMessages, None>;
type ControlEnd = Link<None, LimitMessages>;

/**
 * What a worker asks of control, as both do it: over the two ends of a real link, between which all
 * bytes are delayed, in their order. Bytes on their way arrive even if the worker has ended.
 */
export function linkedLimits({ time, delay, ...ends }: WorkerLinkOptions): LimitStore {
  const wayTo = (reader: () => WorkerEnd | ControlEnd): ByteChannel => {
    let lastMs = 0;
    return {
      write(bytes) {
        const copy = bytes.slice();
        lastMs = Math.max(lastMs, time.now + delay());
        time.schedule(() => reader().received(copy), lastMs - time.now);
        return bytes.length;
      },
      close: () => undefined,
    };
  };
  const opened = Promise.withResolvers<void>();
  const common = { hello: undefined, onLost: () => undefined };
  const worker: WorkerEnd = new Link<CoordinationMessages, None>({
    ...common,
    channel: wayTo(() => control),
    clock: ends.clock,
    later: (run) => ends.clock.schedule(run, 0),
    jsonKinds,
    handlers: {},
    onOpen: () => opened.resolve(),
  });
  const control: ControlEnd = new Link<None, LimitMessages>({
    ...common,
    channel: wayTo(() => worker),
    clock: ends.controlClock,
    later: (run) => ends.controlClock.schedule(run, 0),
    handlers: limitHandlers(ends.limits),
    onOpen: () => undefined,
  });
  return new RemoteLimits({
    async ask(kind, body, timeoutMs) {
      await opened.promise;
      return worker.ask(kind, body, timeoutMs);
    },
    tell: (kind, body) => worker.tell(kind, body),
  });
}
