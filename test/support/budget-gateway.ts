import { expect } from "bun:test";
import { z } from "zod";
import { budgetSchema, type BudgetView } from "../../src/control/contract/budgets.ts";
import type { UsageRecord } from "../../src/domain/usage/usage.ts";
import { startGateway, type GatewayOptions, type TestGateway } from "./gateway.ts";
import { until } from "./until.ts";

export const nano = 1_000_000_000;
/** Output alone has a price, of a thousandth of a dollar each token. */
export const price = "price: { input: 0, cache_read: 0, output: 1000 }";
export const nanoPerToken = 1_000_000;
export const facts = "kind: chat, context_window: 200000, max_output_tokens: 64000";

export const hello = {
  model: "chat-model",
  max_tokens: 40,
  messages: [{ role: "user" as const, content: "Hello" }],
};

/** A gateway whose key may be under budgets, in one process or several. */
export class BudgetGateway implements AsyncDisposable {
  readonly gateway: TestGateway;

  constructor(gateway: TestGateway) {
    this.gateway = gateway;
  }

  static async start(options: GatewayOptions = {}): Promise<BudgetGateway> {
    const models = `
  chat-model: { ${facts}, targets: [{ model: simulated-chat, upstream: simulator, ${price} }] }`;
    const sections = { models, ...options.sections };
    return new BudgetGateway(await startGateway({ ...options, sections }));
  }

  async json(method: string, path: string, body?: unknown): Promise<unknown> {
    const answer = await this.gateway.admin(method, `/admin/v1${path}`, body);
    const text = await answer.text();
    if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text}`);
    return text === "" ? undefined : JSON.parse(text);
  }

  async key() {
    const keys = z.object({
      data: z.array(
        z.object({ id: z.string(), account_id: z.string(), application_id: z.string() }),
      ),
    });
    const key = keys.parse(await this.json("GET", "/keys")).data.at(-1);
    if (key === undefined) throw new Error("there is no key");
    return key;
  }

  async create(body: object): Promise<BudgetView> {
    return budgetSchema.parse(await this.json("POST", "/budgets", body));
  }

  async budget(id: string): Promise<BudgetView> {
    return budgetSchema.parse(await this.json("GET", `/budgets/${id}`));
  }

  async spent(id: string): Promise<number> {
    const { state } = await this.budget(id);
    return nanoOf(state.spent_usd);
  }

  async call(body: object = hello, path = "/v1/chat/completions", init: RequestOptions = {}) {
    const answer = await this.gateway.post(path, body, init);
    const text = await answer.text();
    return { status: answer.status, text, headers: answer.headers };
  }

  /** How many of so many calls at once are served; the others are refused by a budget. */
  async fitting(count: number, body: object = hello): Promise<number> {
    const all = await Promise.all(Array.from({ length: count }, () => this.call(body)));
    const served = all.filter(({ status }) => status === 200).length;
    const refused = all.filter(({ text }) => text.includes("budget_exceeded")).length;
    if (served + refused !== count) throw new Error(all.map(({ text }) => text).join("\n"));
    return served;
  }

  /** Each process knows what is left. */
  async everyProcessDecides(): Promise<void> {
    await until(async () => {
      const small = { ...hello, max_tokens: 1 };
      const all = await Promise.all(Array.from({ length: 9 }, () => this.call(small)));
      return all.every(({ status }) => status !== 503);
    });
  }

  /** Sets the limit so that so much is left, once every process decides. */
  async leave(budget: BudgetView, leftNano: number): Promise<void> {
    await this.everyProcessDecides();
    const { revision } = await this.budget(budget.id);
    const limit_usd = usdOf((await this.costOfRows()) + leftNano);
    await this.json("PATCH", `/budgets/${budget.id}`, { revision, limit_usd });
  }

  /**
   * Once all calls have ended, all that their rows have not cost is left for one call, and no more:
   * nothing is reserved.
   */
  async expectNothingReserved(id: string): Promise<void> {
    const limit = nanoOf((await this.budget(id)).limit_usd);
    await until(async () => {
      const left = Math.floor((limit - (await this.costOfRows())) / nanoPerToken);
      expect((await this.call({ ...hello, max_tokens: left + 1 })).status).toBe(429);
      return (await this.call({ ...hello, max_tokens: left })).status === 200;
    });
    const cost = await this.costOfRows();
    expect(await this.spent(id)).toBe(cost);
  }

  async rows(): Promise<readonly UsageRecord[]> {
    return this.gateway.usage();
  }

  async costOfRows(): Promise<number> {
    return (await this.rows()).reduce((sum, { costNano = 0 }) => sum + costNano, 0);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.gateway[Symbol.asyncDispose]();
  }
}

interface RequestOptions {
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal;
}

export function nanoOf(usd: string): number {
  return Number(usd.replace(".", ""));
}

export function usdOf(ofNano: number): string {
  return (ofNano / nano).toFixed(9);
}

/** What the message of a refusal says of a budget of its own key. */
export function amountsOf(text: string): Readonly<Record<"limit" | "spent" | "reserved", number>> {
  const found = /Limit ([0-9.]+), Spent ([0-9.]+), Reserved ([0-9.]+),/.exec(text);
  if (found === null) throw new Error(`no amounts in ${text}`);
  const [limit = NaN, spent = NaN, reserved = NaN] = found
    .slice(1)
    .map((usd) => Math.round(Number(usd) * nano));
  return { limit, spent, reserved };
}
