import { randomBase62 } from "../../domain/keys/base62.ts";
import { nanoOfUsd } from "../../domain/money/usd.ts";
import type { Principal } from "../../domain/principal.ts";
import type { Account, StoredBudget } from "../../store/entities.ts";
import type { ControlView } from "../../store/repositories/control-store.ts";
import { requireAccount } from "../accounts/accounts.ts";
import { ownerOf } from "../accounts/applications.ts";
import { changeOf } from "../audit/audit-fields.ts";
import {
  budgetChangeSchema,
  budgetQuerySchema,
  budgetSchema,
  type BudgetView,
  changedBudgetSchema,
  newBudgetSchema,
} from "../contract/budgets.ts";
import { requireKnownNames, unknownName } from "../operation/known-names.ts";
import { type Operation, permissions } from "../operation/operation.ts";
import { invalidField, notPermitted, wrongState } from "../operation/refusals.ts";
import { ResourceOperations } from "../operation/resource-operations.ts";
import { requireVisible } from "../operation/scope.ts";
import type { AdminServices, Platform } from "../services.ts";
import { requireKey } from "../keys/key-view.ts";
import { showBudgets } from "./budget-view.ts";

/**
 * Most budgets that operators set for one account, one application or one key, and most that account
 * holders set: each call is under all of them.
 */
const mostBudgets = 20;
/** The same for each end user, in an account: each may count very many. */
const mostForEach = 5;
const firstAlerts = [50, 80, 100];

/** What calls may cost. Account holders set further budgets, and cannot change those of operators. */
export function budgetOperations(services: AdminServices): readonly Operation[] {
  const budgets = new ResourceOperations(
    {
      kind: "budget",
      reads: permissions.read,
      changes: permissions.manage,
      schema: budgetSchema,
      changedSchema: changedBudgetSchema,
      find: async (view, id, principal) =>
        requireVisible(await view.budgets.get(id), principal, "budget"),
      readFacts: () => services.live.facts({ publicIds: [], accountIds: [] }),
      show: (view, reading) => showBudgets(view, services.clock, reading),
    },
    services,
  );
  return [
    createBudget(budgets, services),
    budgets.list({
      id: "listBudgets",
      summary: "List budgets, newest first",
      query: budgetQuerySchema,
      find: ({ view, query, accountId, page }) =>
        view.budgets.list(
          { accountId, applicationId: query.application_id, keyId: query.key_id },
          page,
        ),
    }),
    budgets.get({ id: "getBudget", summary: "Show a budget" }),
    updateBudget(budgets),
    budgets.delete({
      id: "deleteBudget",
      summary: "Remove a budget",
      description: "What was spent under it is forgotten; the usage stays.",
      async run({ changing, call: { principal }, entity: before }) {
        requireOwn(before, principal);
        await changing.transaction.budgets.delete(before.id);
        await changing.audit(changeOf("budget", "delete", { before }));
        changing.touchesKeys();
      },
    }),
  ];
}

type BudgetOperations = ResourceOperations<"budget", BudgetView>;

function createBudget(budgets: BudgetOperations, services: AdminServices): Operation {
  return budgets.create({
    id: "createBudget",
    summary: "Set a budget",
    description:
      "A call must fit into all budgets that it is under. Calls of the current period count, also " +
      "those of before. A key under a budget that refuses cannot use targets without a price.",
    body: newBudgetSchema,
    answer: budgetSchema,
    async run({ changing, call: { principal }, body, show }) {
      const { transaction, now } = changing;
      const owner = await findOwner(transaction, body, principal);
      checkModel(body.model, owner.environment, services.platform());
      const budget: StoredBudget = {
        id: `bgt_${randomBase62(16, services.random)}`,
        accountId: owner.account.id,
        applicationId: owner.applicationId,
        keyId: owner.keyId,
        model: body.model,
        eachEndUser: body.each_end_user ?? false,
        period: body.period,
        timeZone: body.time_zone ?? owner.account.timeZone,
        mode: body.mode ?? "refuse",
        limitNano: readLimit(body.limit_usd),
        setBy: principal.role === "operator" ? "operator" : "account_holder",
        alerts: sorted(body.alerts ?? (body.each_end_user === true ? [] : firstAlerts)),
        note: body.note ?? "",
        createdAt: now,
        revision: 1,
      };
      checkEachEndUser(budget);
      if (budget.eachEndUser === true && services.platform().endUsers === "off") {
        throw invalidField(
          "each_end_user",
          "it needs end users, and end_users is off: set it to pseudonym, or leave this out",
        );
      }
      await checkCount(transaction, budget);
      await transaction.budgets.insert(budget);
      await transaction.budgets.judge(budget, now);
      await changing.audit(changeOf("budget", "create", { after: budget }));
      changing.touchesKeys();
      return show(budget);
    },
  });
}

function updateBudget(budgets: BudgetOperations): Operation {
  return budgets.update({
    id: "updateBudget",
    summary: "Change a budget",
    description:
      "Absent fields keep their values. A higher limit counts at once, and makes alerts possible " +
      "again that it is no longer enough for. For another period or zone, set another budget.",
    body: budgetChangeSchema,
    wanted({ call: { principal }, entity, body }) {
      requireOwn(entity, principal);
      const { limit_usd: limit, mode = entity.mode, note = entity.note } = body;
      const wanted = {
        ...entity,
        mode,
        note,
        limitNano: limit === undefined ? entity.limitNano : readLimit(limit),
        alerts: sorted(body.alerts ?? entity.alerts),
      };
      checkEachEndUser(wanted);
      return wanted;
    },
    async store({ budgets: stored }, wanted, now) {
      const budget = await stored.update(wanted);
      await stored.judge(budget, now);
      return budget;
    },
  });
}

interface BudgetOwner {
  readonly account: Account;
  readonly applicationId: string | undefined;
  readonly keyId: string | undefined;
  /** Undefined: any of its account. */
  readonly environment: string | undefined;
}

interface NamedOwner {
  readonly account_id?: string | undefined;
  readonly application_id?: string | undefined;
  readonly key_id?: string | undefined;
}

const whatToName =
  "name the one it is for, or an application or a key by 'application_id' or 'key_id'";

/** Throws 404 for what is not visible, and 400 for owners that do not belong to each other. */
async function findOwner(
  view: ControlView,
  named: NamedOwner,
  principal: Principal,
): Promise<BudgetOwner> {
  const key =
    named.key_id === undefined ? undefined : await requireKey(view, named.key_id, principal);
  if (key?.revokedAt !== undefined) {
    throw wrongState("The key has been revoked permanently. Set the budget on another key.");
  }
  const applicationId = named.application_id ?? key?.applicationId;
  if (key !== undefined && key.applicationId !== applicationId) {
    throw invalidField("application_id", "use that of the key, or leave it out");
  }
  const application =
    applicationId === undefined
      ? undefined
      : requireVisible(await view.applications.get(applicationId), principal, "application");
  const accountId = application?.accountId ?? ownerOf(named.account_id, principal, whatToName);
  if (named.account_id !== undefined && named.account_id !== accountId) {
    throw invalidField("account_id", "use that of the application or the key, or leave it out");
  }
  const account = await requireAccount(view, accountId, principal);
  return { account, applicationId, keyId: key?.id, environment: application?.environment };
}

/** A budget for a model that nobody can call would never count anything. */
function checkModel(
  written: string | undefined,
  environment: string | undefined,
  platform: Platform,
): void {
  if (written === undefined) return;
  if (environment === undefined) return requireKnownNames(platform, { model: written });
  const own = platform.environments.find(({ name }) => name === environment);
  const known = own?.models.map(({ alias }) => alias) ?? [];
  if (known.includes(written)) return;
  throw unknownName("model", {
    noun: "model",
    owner: `environment ${environment}`,
    written,
    known,
  });
}

/** One who spends it is no event, and their number in a time without end has no bound. */
function checkEachEndUser({ eachEndUser, mode: set, alerts, period }: StoredBudget): void {
  if (eachEndUser !== true) return;
  if (period === "total") throw invalidField("period", `use day, week or month ${ofEach}`);
  if (set !== "refuse") throw invalidField("mode", `use refuse ${ofEach}`);
  if (alerts.length > 0) throw invalidField("alerts", `leave it out ${ofEach}`);
}

const ofEach = "for a budget of each end user";

async function checkCount(view: ControlView, budget: StoredBudget): Promise<void> {
  const { ofOwner, forEach } = await view.budgets.count(budget);
  const setters = budget.setBy === "operator" ? "operators" : "account holders";
  if (budget.eachEndUser === true && forEach >= mostForEach) {
    throw wrongState(
      `The account has ${mostForEach} budgets of ${setters} for each end user, which is the maximum. Remove one first.`,
    );
  }
  if (ofOwner < mostBudgets) return;
  throw wrongState(
    `It has ${mostBudgets} budgets of ${setters}, which is the maximum. Remove one first.`,
  );
}

function requireOwn({ setBy }: StoredBudget, { role }: Principal): void {
  if (role === "operator" || setBy !== "operator") return;
  throw notPermitted(
    "An operator has set this budget, so only an operator can change it. Ask one, or set a lower " +
      "budget of your own.",
  );
}

function readLimit(text: string): number {
  const nano = nanoOfUsd(text);
  if (nano === undefined) throw new Error("the schema lets only amounts pass");
  return nano;
}

function sorted(alerts: readonly number[]): readonly number[] {
  return [...new Set(alerts)].toSorted((one, other) => one - other);
}
