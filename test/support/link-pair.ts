import { systemClock } from "../../src/domain/clock.ts";
import type { LinkLost } from "../../src/process/link/link-errors.ts";
import { Link, type Handlers, type Messages } from "../../src/process/link/link.ts";
import type { ByteChannel } from "../../src/process/link/outbox.ts";

export interface EndOptions<Heard extends Messages> {
  readonly handlers: Handlers<Heard>;
  readonly hello?: unknown;
}

/** One end, and what it was told. */
export interface LinkEnd<Sent extends Messages, Heard extends Messages> {
  readonly link: Link<Sent, Heard>;
  readonly hellos: unknown[];
  readonly losses: LinkLost[];
}

/** A way in one direction: bytes are taken up to a capacity, and arrive in pieces. */
export class Pipe implements ByteChannel {
  capacity = Number.POSITIVE_INFINITY;
  writes = 0;
  isClosed = false;
  #bytes: Uint8Array[] = [];

  write(bytes: Uint8Array): number {
    const room = Math.max(0, this.capacity - this.waiting);
    const taken = bytes.slice(0, room);
    this.writes += 1;
    if (taken.length > 0) this.#bytes.push(taken);
    return taken.length;
  }

  close(): void {
    this.isClosed = true;
  }

  get waiting(): number {
    return this.#bytes.reduce((sum, { length }) => sum + length, 0);
  }

  take(count: number): Uint8Array {
    const all = Buffer.concat(this.#bytes);
    const rest = all.subarray(count);
    this.#bytes = rest.length === 0 ? [] : [new Uint8Array(rest)];
    return new Uint8Array(all.subarray(0, count));
  }
}

/** Two ends of a link in one process, with the pipes between them. */
export class LinkPair<Near extends Messages, Far extends Messages> {
  readonly toFar = new Pipe();
  readonly toNear = new Pipe();
  readonly near: LinkEnd<Near, Far>;
  readonly far: LinkEnd<Far, Near>;

  constructor(near: EndOptions<Far>, far: EndOptions<Near>) {
    this.near = endOf<Near, Far>(this.toFar, near);
    this.far = endOf<Far, Near>(this.toNear, far);
  }

  /** Moves all bytes in pieces of the given sizes until nothing is left and nobody has more. */
  async settle(pieces: () => number = () => 65_536): Promise<void> {
    for (let quiet = 0; quiet < 4;) {
      await new Promise((resolve) => setImmediate(resolve));
      quiet = this.move(pieces) ? 0 : quiet + 1;
    }
  }

  /** Moves one piece in each direction; false when there was nothing to move. */
  move(pieces: () => number): boolean {
    return [
      move(this.toFar, { from: this.near.link, to: this.far.link, pieces }),
      move(this.toNear, { from: this.far.link, to: this.near.link, pieces }),
    ].includes(true);
  }
}

interface Movement {
  readonly from: { drained(): void };
  readonly to: { received(bytes: Uint8Array): void };
  readonly pieces: () => number;
}

function move(pipe: Pipe, { from, to, pieces }: Movement): boolean {
  if (pipe.waiting === 0) return false;
  to.received(pipe.take(Math.max(1, pieces())));
  if (pipe.waiting < pipe.capacity) from.drained();
  return true;
}

function endOf<Sent extends Messages, Heard extends Messages>(
  channel: ByteChannel,
  { hello = {}, ...options }: EndOptions<Heard>,
): LinkEnd<Sent, Heard> {
  const hellos: unknown[] = [];
  const losses: LinkLost[] = [];
  const link = new Link<Sent, Heard>({
    ...options,
    channel,
    clock: systemClock,
    hello,
    onOpen: (told) => void hellos.push(told),
    onLost: (reason) => void losses.push(reason),
  });
  return { link, hellos, losses };
}
