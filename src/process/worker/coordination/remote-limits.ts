import type { CountedRequest, LimitScope } from "../../../domain/limits/limit-scope.ts";
import type {
  CountDecision,
  LimitDecision,
  LimitRequest,
  LimitStore,
} from "../../../store/store.ts";
import {
  countDecisionFromWire,
  countedToWire,
  decisionFromWire,
  requestToWire,
  scopesToWire,
} from "../../link/limit-wire.ts";
import type { CoordinationLink } from "../control-link.ts";

type LimitLink = Pick<CoordinationLink, "ask" | "tell">;

/** The limits that all workers share, decided by control: each decision is one round trip. */
export class RemoteLimits implements LimitStore {
  readonly #link: LimitLink;

  constructor(link: LimitLink) {
    this.#link = link;
  }

  async count(scopes: readonly LimitScope[]): Promise<CountDecision> {
    const decision = await this.#link.ask("limits.count", scopesToWire(scopes));
    return countDecisionFromWire(decision, scopes);
  }

  uncount(counted: CountedRequest): void {
    this.#link.tell("limits.uncount", countedToWire(counted));
  }

  async acquire(request: LimitRequest): Promise<LimitDecision> {
    return decisionFromWire(await this.#link.ask("limits.acquire", requestToWire(request)));
  }

  use(callId: string, tokens: number): void {
    this.#link.tell("limits.use", { callId, tokens });
  }

  settle(callId: string, tokens: number): void {
    this.#link.tell("limits.settle", { callId, tokens });
  }
}
