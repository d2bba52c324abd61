import type { ExtraAttempts, RetryBudget } from "../../../routing/retry-budget.ts";
import { LinkLost } from "../../link/link-errors.ts";
import type { BudgetKind } from "../../link/messages.ts";
import type { CoordinationLink } from "./coordination-link.ts";
import type { RoutingReports } from "./routing-reports.ts";

export interface RemoteBudgetOptions {
  readonly kind: BudgetKind;
  readonly link: CoordinationLink;
  readonly reports: Pick<RoutingReports, "began">;
  /** This worker's part, used while control is unavailable. */
  readonly own: Pick<RetryBudget, "began" | "tryTake" | "took" | "retain">;
}

/** The extra attempts of all workers, whose budget control has. */
export class RemoteBudget implements ExtraAttempts {
  readonly #options: RemoteBudgetOptions;

  constructor(options: RemoteBudgetOptions) {
    this.#options = options;
  }

  began(name: string): void {
    const { kind, reports, own } = this.#options;
    own.began(name);
    reports.began(kind, name);
  }

  async tryTake(name: string, key: string): Promise<boolean> {
    const { kind, link, own } = this.#options;
    try {
      const isTaken = await link.ask("budget.take", [kind, name, key]);
      if (isTaken) own.took(name, key);
      return isTaken;
    } catch (error) {
      if (!(error instanceof LinkLost)) throw error;
      return own.tryTake(name, key);
    }
  }

  retain(names: ReadonlySet<string>): void {
    this.#options.own.retain(names);
  }
}
