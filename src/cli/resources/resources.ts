import { explain } from "../explain/explain.ts";
import { usage } from "../usage/usage.ts";
import { statement } from "../usage/statement.ts";
import type { ResourceSpec } from "../verbs/verb-command.ts";
import { sessions, tokens, users } from "./access.ts";
import { accounts, applications } from "./accounts.ts";
import { audit } from "./audit.ts";
import { budgets } from "./budgets.ts";
import { keys } from "./keys.ts";
import { overview, targets } from "./live.ts";
import {
  configuration,
  environments,
  models,
  peppers,
  plans,
  pools,
  refusals,
} from "./platform.ts";
import { prices } from "./prices.ts";
import { processes } from "./processes.ts";
import { status } from "./status.ts";

export const resourceSpecs: readonly ResourceSpec[] = [
  accounts,
  applications,
  keys,
  budgets,
  pools,
  peppers,
  users,
  tokens,
  sessions,
  usage,
  prices,
  statement,
  environments,
  models,
  plans,
  configuration,
  audit,
  refusals,
  explain,
  status,
  overview,
  targets,
  processes,
];
