/** What the console asks of the admin API. Paths are below `/admin/v1`. */
import type {
  AccountChange,
  AccountView,
  ApplicationChange,
  ApplicationView,
  AuditEntryView,
  CallRow,
  ChangedAccount,
  ChangedApplication,
  ChangedKey,
  Configuration,
  Credentials,
  Environments,
  Explanation,
  Erased,
  Erasure,
  IssuedKey,
  IssuedLink,
  IssuedToken,
  KeyChange,
  KeyView,
  LinkExchange,
  Models,
  NewAccount,
  NewApplication,
  NewKey,
  NewLink,
  NewOperator,
  Overview,
  NewToken,
  NewUser,
  OpenSessionView,
  PasswordChange,
  Plans,
  Pools,
  Processes,
  Refusals,
  Removed,
  RotatedKey,
  Rotation,
  SessionView,
  SignedOut,
  SignInOptionsView,
  Targets,
  TokenView,
  UsageTotals,
  UsageSeries,
  UserChange,
  UserView,
} from "./contract.ts";

/** Answers by path. A name in braces is filled from the parameters, the others are the query. */
export interface Reads {
  "/sign-in": SignInOptionsView;
  "/session": SessionView;
  "/environments": Environments;
  "/plans": Plans;
  "/models": Models;
  "/overview": Overview;
  "/pools": Pools;
  "/processes": Processes;
  "/targets": Targets;
  "/keys/{id}": KeyView;
  "/usage/totals": UsageTotals;
  "/usage/series": UsageSeries;
  "/refusals": Refusals;
  "/explain/{id}": Explanation;
  "/accounts/{id}": AccountView;
  "/configuration": Configuration;
  "/users/{id}": UserView;
}

/** Items of lists, which come in pages, newest first. */
export interface Lists {
  "/accounts": AccountView;
  "/applications": ApplicationView;
  "/keys": KeyView;
  "/usage/calls": CallRow;
  "/users": UserView;
  "/tokens": TokenView;
  "/sessions": OpenSessionView;
  "/audit": AuditEntryView;
}

interface Change<Body, Answer> {
  readonly body: Body;
  readonly answer: Answer;
}

export interface Changes {
  "POST /session": Change<Credentials, SessionView>;
  "DELETE /session": Change<undefined, SignedOut>;
  "POST /bootstrap": Change<NewOperator, SessionView>;
  "POST /session/link": Change<LinkExchange, SessionView>;
  "POST /session/password": Change<PasswordChange, SessionView>;
  "POST /accounts": Change<NewAccount, AccountView>;
  "PATCH /accounts/{id}": Change<AccountChange, ChangedAccount>;
  "POST /accounts/{id}/erase": Change<Erasure, Erased>;
  "POST /users": Change<NewUser, UserView>;
  "PATCH /users/{id}": Change<UserChange, UserView>;
  "DELETE /users/{id}": Change<undefined, Removed>;
  "POST /users/{id}/link": Change<NewLink, IssuedLink>;
  "POST /tokens": Change<NewToken, IssuedToken>;
  "DELETE /tokens/{id}": Change<undefined, TokenView>;
  "DELETE /sessions/{id}": Change<undefined, Removed>;
  "POST /applications": Change<NewApplication, ApplicationView>;
  "PATCH /applications/{id}": Change<ApplicationChange, ChangedApplication>;
  "DELETE /applications/{id}": Change<undefined, Removed>;
  "POST /keys": Change<NewKey, IssuedKey>;
  "PATCH /keys/{id}": Change<KeyChange, ChangedKey>;
  "DELETE /keys/{id}": Change<undefined, ChangedKey>;
  "POST /keys/{id}/rotate": Change<Rotation, RotatedKey>;
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
