/** What the console asks of the admin API. Paths are below `/admin/v1`. */
import type * as schemas from "../../../src/control/contract.ts";
import type * as view from "./contract.ts";
import type { Input, Output } from "./contract.ts";

/** Answers by path. A name in braces is filled from the parameters, the others are the query. */
export interface Reads {
  "/sign-in": schemas.SignInOptionsView;
  "/session": view.SessionView;
  "/choices": view.Choices;
  "/overview": view.Overview;
  "/prices": view.Prices;
  "/pools": Output<typeof schemas.poolsSchema>;
  "/processes": view.Processes;
  "/targets": view.Targets;
  "/keys/{id}": view.KeyView;
  "/usage/totals": Output<typeof schemas.totalsSchema>;
  "/usage/series": view.UsageSeries;
  "/refusals": Output<typeof schemas.refusalsSchema>;
  "/explain/{id}": view.Explanation;
  "/accounts/{id}": view.AccountView;
  "/configuration": view.Configuration;
  "/users/{id}": view.UserView;
  "/budgets/{id}": view.BudgetView;
}

/** Items of lists, which come in pages, newest first. */
export interface Lists {
  "/accounts": view.AccountView;
  "/applications": view.ApplicationView;
  "/keys": view.KeyView;
  "/usage/calls": view.CallRow;
  "/users": view.UserView;
  "/tokens": view.TokenView;
  "/sessions": view.OpenSessionView;
  "/audit": view.AuditEntryView;
  "/budgets": view.BudgetView;
}

interface Change<Body, Answer> {
  readonly body: Body;
  readonly answer: Answer;
}

type ChangedKey = Output<typeof schemas.changedKeySchema>;
type Removed = Output<typeof schemas.removedSchema>;

export interface Changes {
  "POST /session": Change<Input<typeof schemas.credentialsSchema>, view.SessionView>;
  "DELETE /session": Change<undefined, Output<typeof schemas.signedOutSchema>>;
  "POST /bootstrap": Change<Input<typeof schemas.bootstrapSchema>, view.SessionView>;
  "POST /session/link": Change<Input<typeof schemas.linkExchangeSchema>, view.SessionView>;
  "POST /session/password": Change<Input<typeof schemas.passwordChangeSchema>, view.SessionView>;
  "POST /accounts": Change<view.NewAccount, view.AccountView>;
  "PATCH /accounts/{id}": Change<
    Input<typeof schemas.accountChangeSchema>,
    Output<typeof schemas.changedAccountSchema>
  >;
  "POST /accounts/{id}/erase": Change<Input<typeof schemas.erasureSchema>, view.Erased>;
  "POST /users": Change<Input<typeof schemas.newUserSchema>, view.UserView>;
  "PATCH /users/{id}": Change<Input<typeof schemas.userChangeSchema>, view.UserView>;
  "DELETE /users/{id}": Change<undefined, Removed>;
  "POST /users/{id}/link": Change<Input<typeof schemas.newLinkSchema>, view.IssuedLink>;
  "POST /tokens": Change<Input<typeof schemas.newTokenSchema>, view.IssuedToken>;
  "DELETE /tokens/{id}": Change<undefined, view.TokenView>;
  "DELETE /sessions/{id}": Change<undefined, Removed>;
  "POST /budgets": Change<Input<typeof schemas.newBudgetSchema>, view.BudgetView>;
  "PATCH /budgets/{id}": Change<
    Input<typeof schemas.budgetChangeSchema>,
    Output<typeof schemas.changedBudgetSchema>
  >;
  "DELETE /budgets/{id}": Change<undefined, Removed>;
  "POST /applications": Change<Input<typeof schemas.newApplicationSchema>, view.ApplicationView>;
  "PATCH /applications/{id}": Change<
    Input<typeof schemas.applicationChangeSchema>,
    Output<typeof schemas.changedApplicationSchema>
  >;
  "DELETE /applications/{id}": Change<undefined, Removed>;
  "POST /keys": Change<Input<typeof schemas.newKeySchema>, view.IssuedKey>;
  "PATCH /keys/{id}": Change<view.KeyChange, ChangedKey>;
  "DELETE /keys/{id}": Change<undefined, ChangedKey>;
  "POST /keys/{id}/rotate": Change<Input<typeof schemas.rotationSchema>, view.RotatedKey>;
  "DELETE /keys/{id}/secrets/{public_id}": Change<undefined, ChangedKey>;
}

export type Parameters = Readonly<Record<string, string | number | undefined>>;

/** Fills the names in braces; what is left becomes the query. */
export function addressOf(path: string, parameters: Parameters = {}): string {
  const query = new URLSearchParams();
  let filled = path;
  for (const [name, value] of Object.entries(parameters)) {
    if (value === undefined || value === "") continue;
    const place = `{${name}}`;
    if (filled.includes(place)) filled = filled.replace(place, encodeURIComponent(value));
    else query.set(name, String(value));
  }
  return `/admin/v1${filled}${query.size === 0 ? "" : `?${query.toString()}`}`;
}
