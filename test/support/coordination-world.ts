import type { Clock } from "../../src/domain/clock.ts";
import { Coordination } from "../../src/process/control/coordination/coordination.ts";
import type { LimitBounds } from "../../src/process/control/coordination/shared-limits.ts";
import { LinkLost } from "../../src/process/link/link-errors.ts";
import { Link, type Handlers } from "../../src/process/link/link.ts";
import {
  jsonKinds,
  type ControlMessages,
  type CoordinationMessages,
  type SharingMessages,
} from "../../src/process/link/messages.ts";
import type { ByteChannel } from "../../src/process/link/outbox.ts";
import type { CoordinationLink } from "../../src/process/worker/coordination/coordination-link.ts";
import { CoordinationParts } from "../../src/process/worker/coordination/coordination-parts.ts";
import { RemoteLimits } from "../../src/process/worker/coordination/limits/remote-limits.ts";
import { SoloLimits } from "../../src/process/worker/coordination/limits/solo-limits.ts";
import { restoreWindows } from "../../src/process/wiring/restore-windows.ts";
import type { LimitStore } from "../../src/store/store.ts";
import type { AdmittedUsage } from "../../src/store/usage-reports.ts";
import { ManualClock } from "./manual-clock.ts";
import { plainRouting } from "./pipeline-fixtures.ts";

/** What a process wrote, on its way; it arrives even if the process has ended. */
class Way implements ByteChannel {
  readonly #writer: Process;
  #bytes: Uint8Array[] = [];

  constructor(writer: Process) {
    this.#writer = writer;
  }

  write(bytes: Uint8Array): number {
    if (!this.#writer.mayWrite()) return bytes.length;
    this.#bytes.push(bytes.slice());
    return bytes.length;
  }

  close(): void {
    // The pair is closed as a whole.
  }

  take(): readonly Uint8Array[] {
    return this.#bytes.splice(0);
  }
}

interface Timer {
  readonly at: number;
  readonly run: () => void;
  /** Of a note that may wait for the next message. */
  readonly isOfNote: boolean;
}

/** Longest wait of a note that need not be sent at once. */
const noteWaitMs = 5;
/** Longer timers never run: the limits of waits for control are no part of these tests. */
const longestTimerMs = 2_000;

/** A process that may end at a write. */
class Process {
  readonly clock: ManualClock;
  #timers: Timer[] = [];
  isAlive = true;
  /** Writes before its end. */
  writesLeft = Number.POSITIVE_INFINITY;

  constructor(clock: ManualClock) {
    this.clock = clock;
  }

  /** Its time, with timers that run in `runTimers`. */
  get timedClock(): Clock {
    return {
      now: () => this.clock.now(),
      monotonic: () => this.clock.monotonic(),
      schedule: (run, delayMs) => {
        if (delayMs > longestTimerMs) return () => undefined;
        const at = this.clock.monotonic() + delayMs;
        const timer: Timer = { at, run, isOfNote: delayMs === noteWaitMs };
        this.#timers.push(timer);
        return () => void (this.#timers = this.#timers.filter((other) => other !== timer));
      },
    };
  }

  /** Runs those that are due, and those of notes too; false if there are none. */
  runTimers(withNotes: boolean): boolean {
    const now = this.clock.monotonic();
    const due = this.#timers.filter(({ at, isOfNote }) => at <= now || (withNotes && isOfNote));
    this.#timers = this.#timers.filter((timer) => !due.includes(timer));
    if (this.isAlive) for (const { run } of due.toSorted((a, b) => a.at - b.at)) run();
    return due.length > 0;
  }

  mayWrite(): boolean {
    if (this.writesLeft <= 0) this.isAlive = false;
    this.writesLeft -= 1;
    return this.isAlive;
  }
}

interface Connection {
  readonly worker: WorkerWorld;
  readonly control: ControlWorld;
  readonly toControl: Way;
  readonly toWorker: Way;
  readonly near: Link<CoordinationMessages, ControlMessages>;
  readonly far: Link<ControlMessages, CoordinationMessages>;
}

class ControlWorld extends Process {
  readonly coordination: Coordination;

  constructor(clock: ManualClock, coordination: Coordination) {
    super(clock);
    this.coordination = coordination;
  }
}

/** One worker: its limits, and its end of the link. */
export class WorkerWorld extends Process implements CoordinationLink {
  readonly number: number;
  readonly limits: LimitStore;
  readonly parts = new CoordinationParts();
  connection: Connection | undefined;
  /** Whether it neither reads nor writes for now. */
  isHanging = false;
  /** Asked of control, and told to it. */
  asks = 0;
  notes = 0;
  /** Notes of what all workers were granted. */
  told = 0;

  constructor(number: number, clock: ManualClock, { bounds, workers, ledger }: WorldOptions) {
    super(clock);
    this.number = number;
    const options = { clock: this.timedClock, random: () => 0, ...bounds };
    const reports = { admitted: async (since: number) => ledger(since) };
    this.limits =
      workers > 1
        ? new RemoteLimits(this, options)
        : new SoloLimits(this, {
            ...options,
            restore: (limits) => restoreWindows({ limits, reports, clock, plans: new Map() }),
          });
  }

  readonly ask: CoordinationLink["ask"] = (kind, body, timeoutMs) => {
    this.asks += 1;
    const link = this.connection?.near;
    if (link === undefined) return Promise.reject(new LinkLost("there is no control"));
    return link.ask(kind, body, timeoutMs);
  };

  readonly tell: CoordinationLink["tell"] = (kind, body) => {
    this.notes += 1;
    this.connection?.near.tell(kind, body);
  };

  readonly tellSoon: CoordinationLink["tellSoon"] = (kind, body) => {
    this.notes += 1;
    this.connection?.near.tellSoon(kind, body);
  };

  join(part: Parameters<CoordinationParts["join"]>[0]): void {
    this.parts.join(part);
  }
}

const noPlaces = {
  plans: new Map(),
  pools: new Map(),
  upstreams: new Map(),
  routing: plainRouting,
};

export interface WorldOptions {
  readonly workers: number;
  /** By how much the time of each process differs from that of the one before. */
  readonly skewMs: number;
  readonly bounds: LimitBounds;
  /** Of all processes; undefined: each has its own. */
  readonly clock?: ManualClock;
  readonly random?: () => number;
  /** What the ledger has since a time of the wall clock. */
  readonly ledger: (since: number) => readonly AdmittedUsage[];
}

/** Control and workers of one gateway in this process, with links that tests hold and cut. */
export class CoordinationWorld {
  readonly clock = new ManualClock({ monotonicMs: 1_000_000 });
  readonly #options: WorldOptions;
  readonly #clocks: ManualClock[] = [];
  readonly #connections = new Set<Connection>();
  readonly workers: WorkerWorld[] = [];
  control: ControlWorld | undefined;

  constructor(options: WorldOptions) {
    this.#options = options;
  }

  async start(): Promise<void> {
    await this.startControl();
    for (let number = 1; number <= this.#options.workers; number += 1) this.startWorker(number);
    await this.settle();
  }

  advance(durationMs: number): void {
    this.clock.advance(durationMs);
    for (const clock of this.#clocks) clock.advance(durationMs);
    this.#runTimers(false);
  }

  living(): readonly WorkerWorld[] {
    return this.workers.filter(({ isAlive }) => isAlive);
  }

  async startControl(): Promise<void> {
    const clock = this.#newClock();
    const coordination = new Coordination({
      config: { ...noPlaces, processes: this.#options.workers },
      keys: { loadKeys: async () => ({ changes: [], epoch: 0, hasMore: false }) },
      onWaited: () => undefined,
      clock: withoutTimers(clock),
      random: this.#options.random ?? (() => 0),
      bounds: this.#options.bounds,
      reports: { admitted: async (since) => this.#options.ledger(since) },
      living: this.living().map(({ number }) => number),
    });
    this.control = new ControlWorld(clock, coordination);
    await coordination.start();
    const linked = [...this.#connections].map(({ worker }) => worker);
    // Others have to learn first that they have lost the process before.
    for (const worker of this.living()) if (!linked.includes(worker)) this.#connect(worker);
  }

  startWorker(number: number): WorkerWorld {
    const worker = new WorkerWorld(number, this.#newClock(), this.#options);
    this.workers.push(worker);
    this.#connect(worker);
    return worker;
  }

  /** Ends a process; what it wrote arrives. */
  end(process: Process | undefined): void {
    if (process !== undefined) process.isAlive = false;
  }

  /** Moves what is on its way once; true if something moved. */
  async step(): Promise<boolean> {
    await turn();
    let hasMoved = false;
    for (const connection of this.#connections) {
      if (deliver(connection)) hasMoved = true;
      // The runtime, too, runs what waits for a message before it says that a socket has ended.
      await turn();
      if (this.#endDead(connection)) hasMoved = true;
    }
    return hasMoved;
  }

  async settle(): Promise<void> {
    for (let quiet = 0; quiet < 3;) {
      const hasMoved = (await this.step()) || this.#runTimers(true);
      quiet = hasMoved ? 0 : quiet + 1;
    }
  }

  /** Timers that are due, and those of notes if all is to be delivered. */
  #runTimers(withNotes: boolean): boolean {
    const processes = [...(this.control === undefined ? [] : [this.control]), ...this.workers];
    return processes.filter((process) => process.runTimers(withNotes)).length > 0;
  }

  #endDead(connection: Connection): boolean {
    const { worker, control, far } = connection;
    if (control.isAlive && worker.isAlive) return false;
    if (deliver(connection)) return true;
    this.#connections.delete(connection);
    if (control.isAlive) far.ended();
    if (worker.isAlive) this.#lost(connection);
    return true;
  }

  #lost({ worker, near }: Connection): void {
    worker.connection = undefined;
    near.ended();
    if (this.control?.isAlive === true) this.#connect(worker);
    else worker.parts.alone();
  }

  #connect(worker: WorkerWorld): void {
    const { control } = this;
    if (control?.isAlive !== true) return;
    const { coordination } = control;
    const shared = coordination.ofWorker(() => far);
    const toControl = new Way(worker);
    const toWorker = new Way(control);
    const near: Connection["near"] = new Link<CoordinationMessages, ControlMessages>({
      channel: toControl,
      clock: worker.timedClock,
      hello: { number: worker.number, limits: worker.parts.limitsState },
      jsonKinds,
      handlers: {
        ...workerHandlers(worker.parts.handlers),
        "limits.used": (told) => {
          worker.told += 1;
          return worker.parts.handlers["limits.used"](told);
        },
      },
      onOpen: () => {
        worker.connection = connection;
      },
      onLost: (reason) => worker.parts.lost(reason),
    });
    const far: Connection["far"] = new Link<ControlMessages, CoordinationMessages>({
      channel: toWorker,
      clock: control.timedClock,
      hello: undefined,
      jsonKinds,
      handlers: shared.handlers,
      beforeFlush: coordination.publish,
      onOpen: (hello) => void shared.opened(far, hello),
      onLost: () => shared.end(),
    });
    const connection = { worker, control, toControl, toWorker, near, far };
    this.#connections.add(connection);
  }

  #newClock(): ManualClock {
    if (this.#options.clock !== undefined) return this.#options.clock;
    const monotonicMs = this.clock.monotonic() + this.#options.skewMs * this.#clocks.length;
    const clock = new ManualClock({ wallMs: this.clock.now(), monotonicMs });
    this.#clocks.push(clock);
    return clock;
  }
}

function deliver({ worker, control, toControl, toWorker, near, far }: Connection): boolean {
  if (worker.isHanging) return false;
  const toFar = toControl.take();
  const toNear = toWorker.take();
  if (control.isAlive) for (const bytes of toFar) far.received(bytes);
  if (worker.isAlive) for (const bytes of toNear) near.received(bytes);
  return toFar.length + toNear.length > 0;
}

function workerHandlers(handlers: Handlers<SharingMessages>): Handlers<ControlMessages> {
  return {
    ...handlers,
    "keys.reload": () => 0,
    state: () => undefined,
    replaced: () => undefined,
    "config.changed": () => undefined,
    "health.changed": () => undefined,
    "metrics.read": () => "",
  };
}

/** The limits of waits are no part of these tests. */
function withoutTimers(clock: Clock): Clock {
  return {
    now: () => clock.now(),
    monotonic: () => clock.monotonic(),
    schedule: () => () => undefined,
  };
}

function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
