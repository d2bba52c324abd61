import { joinHandlers, type Ready } from "../../src/process/control/coordination/join-handlers.ts";
import { LinkLost } from "../../src/process/link/link-errors.ts";
import {
  jsonKinds,
  type JoinMessages,
  type SharingMessages,
  type WorkerMessages,
} from "../../src/process/link/messages.ts";
import { RemoteJoins } from "../../src/process/worker/coordination/remote-joins.ts";
import type { MemoryJoins, ProcessJoins } from "../../src/store/coordinator/memory/joins.ts";
import type { ReplyStore } from "../../src/store/store.ts";
import { LinkPair } from "./link-pair.ts";

type Sent = JoinMessages & Pick<WorkerMessages, "replies.find" | "replies.put">;
type Heard = Pick<SharingMessages, "coordination.report">;

/** What a control process has that workers ask for. */
export interface ControlSide {
  readonly joins: MemoryJoins;
  readonly ready: Ready;
  readonly replies: Pick<ReplyStore, "find" | "put">;
}

/** What a worker asks control for, over a link that the test moves and cuts. */
export class LinkedWorker {
  readonly joins: RemoteJoins;
  readonly replies: Pick<ReplyStore, "find" | "put"> = {
    find: (id) => this.#ask((link) => link.ask("replies.find", id)),
    put: (reply, limitBytes) => this.#ask((link) => link.ask("replies.put", { reply, limitBytes })),
  };
  /** Whether the control process of now has learned what it holds. */
  hasReported = false;
  #pair: LinkPair<Sent, Heard> | undefined;
  #atControl: ProcessJoins | undefined;

  constructor() {
    this.joins = new RemoteJoins({
      ask: (kind, body, timeoutMs) => this.#ask((link) => link.ask(kind, body, timeoutMs)),
      tell: (kind, body) => this.#pair?.near.link.tell(kind, body),
      tellSoon: (kind, body) => this.#pair?.near.link.tellSoon(kind, body),
      join: () => undefined,
    });
  }

  get isConnected(): boolean {
    return this.#pair !== undefined;
  }

  connect({ joins, ready, replies }: ControlSide): void {
    const atControl = joins.ofProcess();
    const handlers = joinHandlers(atControl, ready);
    this.#atControl = atControl;
    this.#pair = new LinkPair<Sent, Heard>(
      { jsonKinds, handlers: { "coordination.report": () => this.joins.report() } },
      {
        handlers: {
          ...handlers,
          "replies.find": (id) => replies.find(id),
          "replies.put": ({ reply, limitBytes }) => replies.put(reply, limitBytes),
        },
      },
    );
    void this.#pair.far.link.ask("coordination.report", undefined).then(
      ({ joins: held = [] }) => {
        if (this.#atControl !== atControl) return;
        atControl.restore(held);
        this.hasReported = true;
      },
      () => undefined,
    );
  }

  /** One of both processes dies. */
  disconnect(): void {
    const pair = this.#pair;
    this.#pair = undefined;
    this.hasReported = false;
    this.#atControl?.end();
    pair?.near.link.ended();
    pair?.far.link.ended();
  }

  /** Moves one piece in each direction; false when there was nothing to move. */
  move(pieces: () => number): boolean {
    return this.#pair?.move(pieces) === true;
  }

  async settle(): Promise<void> {
    await this.#pair?.settle();
  }

  async #ask<Answer>(
    ask: (link: LinkPair<Sent, Heard>["near"]["link"]) => Promise<Answer>,
  ): Promise<Answer> {
    if (this.#pair === undefined) throw new LinkLost("control is not there");
    return ask(this.#pair.near.link);
  }
}
