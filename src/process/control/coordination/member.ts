import type { Link } from "../../link/link.ts";
import type { ControlMessages, HeldReport, WorkerMessages } from "../../link/messages.ts";

export type MemberLink = Pick<
  Link<ControlMessages, WorkerMessages>,
  "ask" | "tell" | "close" | "sendFirst"
>;

/** One of the connected workers that share limits and places. */
export class Member {
  /** Its calls that are not settled. */
  readonly openCalls = new Set<string>();
  link: MemberLink | undefined;
  /** What it held when it was asked. */
  report: HeldReport | undefined;
  /** By the clock of this process. */
  reportedAtMs = 0;
  #admission = Promise.withResolvers<void>();
  readonly #takeOver: (report: HeldReport) => void;
  #isAdmitted = false;

  /** `takeOver`: counts what it held, except for limits. */
  constructor(takeOver: (report: HeldReport) => void = () => undefined) {
    this.#takeOver = takeOver;
  }

  /** Whether control decides for it. */
  get isAdmitted(): boolean {
    return this.#isAdmitted;
  }

  takeOver(report: HeldReport): void {
    this.#takeOver(report);
  }

  admit(): void {
    this.#isAdmitted = true;
    this.#admission.resolve();
  }

  /** From now on the worker decides alone. */
  dismiss(): void {
    this.#isAdmitted = false;
    this.#admission = Promise.withResolvers();
    this.openCalls.clear();
    this.report = undefined;
  }

  /** Resolves when control decides for it; undefined from then on. */
  get admitted(): Promise<void> | undefined {
    return this.#isAdmitted ? undefined : this.#admission.promise;
  }

  /** Runs `decide` once control decides for the worker, in the order of its messages. */
  when<Answer>(decide: () => Answer | Promise<Answer>): Answer | Promise<Answer> {
    return this.admitted?.then(decide) ?? decide();
  }
}

/** Undefined for a hello without a number. */
export function numberIn(hello: unknown): number | undefined {
  if (typeof hello !== "object" || hello === null || !("number" in hello)) return undefined;
  return typeof hello.number === "number" ? hello.number : undefined;
}

/** Whether it knows what all workers were granted. */
export function knows({ report }: Member): boolean {
  return (report?.limits?.sequence ?? -1) >= 0;
}

/** Orders members by how much of it they know, most first. */
export function byMostKnown(a: Member, b: Member): number {
  const { generation: ofA = 0, sequence: inA = 0 } = a.report?.limits ?? {};
  const { generation: ofB = 0, sequence: inB = 0 } = b.report?.limits ?? {};
  return ofB - ofA || inB - inA;
}
