import { Calendar } from "../../domain/money/calendar.ts";
import { costItems, explainCost, partsOf } from "../../domain/money/cost-parts.ts";
import type { Price, PriceTable } from "../../domain/money/price.ts";
import { usdOfNano } from "../../domain/money/usd.ts";
import type { UsageRecord } from "../../domain/usage/usage.ts";
import type { Account } from "../../store/entities.ts";
import { requireAccount } from "../accounts/accounts.ts";
import { statementLineSchema, statementQuerySchema, statementSchema } from "../contract/money.ts";
import type { StatementView } from "../contract/money.ts";
import { defineOperation, type Operation, permissions } from "../operation/operation.ts";
import { invalidField } from "../operation/refusals.ts";
import type { AdminServices } from "../services.ts";
import { timeText } from "../values/api-form.ts";
import { csvLine } from "./csv.ts";

const pageRows = 500;
const picoPerNano = 1_000n;

/** What an account's calls of a month cost, by model and class of tokens. */
export function statementOperation(services: AdminServices): Operation {
  return defineOperation({
    id: "getStatement",
    method: "GET",
    path: "/admin/v1/accounts/{id}/statement",
    resource: "Usage",
    summary: "Show what an account costs in a month",
    description: "From the stored calls, so it needs all of the month.",
    ...permissions.read,
    query: statementQuerySchema,
    answer: statementSchema,
    downloads: ["application/json", "text/csv"],
    async run({ call, parameters, query: { month, format } }) {
      const account = await services.store.read((view) =>
        requireAccount(view, parameters["id"] ?? "", call.principal),
      );
      const statement = await writeStatement(services, { account, month, signal: call.signal });
      return format === "json" ? statement : asCsv(statement);
    },
  });
}

function asCsv(statement: StatementView): Response {
  const columns = statementLineSchema.keyof().options;
  const lines = [...statement.lines, totalOf(statement)];
  const text = [columns, ...lines.map((line) => columns.map((name) => line[name]))]
    .map(csvLine)
    .join("");
  return new Response(text, {
    headers: {
      "content-type": "text/csv; charset=utf-8",
      "content-disposition": `attachment; filename="sluice-statement-${statement.month}.csv"`,
    },
  });
}

function totalOf({ total_usd: cost_usd }: StatementView) {
  return { model: "", item: "total", tokens: null, cost_usd };
}

interface WantedStatement {
  readonly account: Account;
  readonly month: string;
  readonly signal: AbortSignal;
}

async function writeStatement(
  services: Pick<AdminServices, "reports" | "prices" | "costs">,
  { account, month, signal }: WantedStatement,
): Promise<StatementView> {
  const { startsAt: since, endsAt: until } = monthOf(account, month);
  if (since < (await services.costs.callsSince())) {
    throw invalidField("month", "calls of it are no longer kept: see `retention`");
  }
  const tables = new Map<number, PriceTable | undefined>();
  const models = new Map<string, ModelCosts>();
  let [calls, after]: [number, string | undefined] = [0, undefined];
  do {
    signal.throwIfAborted();
    const filter = { since, until, accountId: account.id };
    const page: Awaited<ReturnType<typeof services.reports.calls>> = await services.reports.calls(
      filter,
      { limit: pageRows, after },
    );
    for (const call of page.items) {
      const { priceVersion: version, target = "" } = call;
      if (version !== undefined && !tables.has(version)) {
        tables.set(version, await services.prices.find(version));
      }
      calls += 1;
      let costs = models.get(call.model);
      if (costs === undefined) models.set(call.model, (costs = new ModelCosts()));
      costs.add(
        call,
        version === undefined ? undefined : tables.get(version)?.targets[target]?.price,
      );
    }
    after = page.next;
  } while (after !== undefined);
  const named = [...models].toSorted(([one], [other]) => (one < other ? -1 : 1));
  const total = named.reduce((sum, [, costs]) => sum + costs.totalNano, 0n);
  return {
    account_id: account.id,
    account: account.name,
    month,
    time_zone: account.timeZone,
    since: timeText(since),
    until: timeText(until),
    calls,
    unpriced_calls: named.reduce((sum, [, costs]) => sum + costs.unpricedCalls, 0),
    lines: named.flatMap(([model, costs]) => costs.lines(model)),
    total_usd: usdOfNano(total),
  };
}

/** The month in the zone of the account. */
function monthOf({ timeZone, createdAt }: Account, month: string) {
  const inside = Date.parse(`${month}-15T12:00:00Z`);
  return new Calendar().periodAt({ period: "month", timeZone, createdAt }, inside);
}

/** The costs of one model. Items in pico-USD, since their parts of a call are not whole nano-USD. */
class ModelCosts {
  readonly #items = new Map(costItems.map((name) => [name, { count: 0, pico: 0n }]));
  #firstNano = 0n;
  #adjustmentsNano = 0n;
  #unpricedCalls = 0;
  #unpricedTokens = 0;

  add(call: UsageRecord, price: Price | undefined): void {
    if ((call.repricedNano ?? call.costNano) === undefined) {
      this.#unpricedCalls += 1;
      this.#unpricedTokens += call.inputTokens + call.outputTokens;
      return;
    }
    const { costNano = 0, repricedNano = costNano } = call;
    this.#firstNano += BigInt(costNano);
    this.#adjustmentsNano += BigInt(repricedNano - costNano);
    if (price === undefined || explainCost(call, price) === undefined) return;
    for (const { item, count, rate } of partsOf(call, price)) {
      const sum = this.#items.get(item);
      if (sum === undefined) continue;
      sum.count += count;
      sum.pico += BigInt(count) * BigInt(rate);
    }
  }

  get totalNano(): bigint {
    return this.#firstNano + this.#adjustmentsNano;
  }

  get unpricedCalls(): number {
    return this.#unpricedCalls;
  }

  /** What the items do not explain is `other`, so that the lines add up. */
  lines(model: string): StatementView["lines"] {
    let restNano = this.#firstNano;
    const lines: StatementView["lines"] = [];
    for (const [item, { count, pico }] of this.#items) {
      if (count === 0) continue;
      const nano = pico / picoPerNano;
      restNano -= nano;
      lines.push({ model, item, tokens: count, cost_usd: usdOfNano(nano) });
    }
    const others = [
      ["other", restNano],
      ["adjustments", this.#adjustmentsNano],
    ] as const;
    for (const [item, nano] of others) {
      if (nano !== 0n) lines.push({ model, item, tokens: null, cost_usd: usdOfNano(nano) });
    }
    if (this.#unpricedCalls > 0) {
      lines.push({ model, item: "not_priced", tokens: this.#unpricedTokens, cost_usd: null });
    }
    return lines;
  }
}
