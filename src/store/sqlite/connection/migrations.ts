import { auditSeals } from "../migrations/audit-seals.ts";
import { callReplies, callReplyShares } from "../migrations/call-replies.ts";
import { controlPlane } from "../migrations/control-plane.ts";
import { firstSchema } from "../migrations/first-schema.ts";
import { installation } from "../migrations/installation.ts";
import { keyNames } from "../migrations/key-names.ts";
import { lateRows } from "../migrations/late-rows.ts";
import { limitHistory } from "../migrations/limit-history.ts";
import { pepperMarks } from "../migrations/pepper-marks.ts";
import { provisionedPools } from "../migrations/provisioned-pools.ts";
import { rareFilters } from "../migrations/rare-filters.ts";
import { replicas } from "../migrations/replicas.ts";
import { tokenParents } from "../migrations/token-parents.ts";
import { cacheWrites, callRouting } from "../migrations/usage-columns.ts";
import { usageRollups } from "../migrations/usage-rollups.ts";

/**
 * Steps of the schema, applied in order and never changed once released: `PRAGMA user_version`
 * counts how many a database has. Times are milliseconds since the epoch.
 */
export const migrations: readonly string[] = [
  firstSchema,
  controlPlane,
  usageRollups,
  lateRows,
  rareFilters,
  provisionedPools,
  callRouting,
  callReplies,
  callReplyShares,
  installation,
  limitHistory,
  auditSeals,
  tokenParents,
  pepperMarks,
  cacheWrites,
  keyNames,
  replicas,
];

/** The schema version from which the audit has seals. */
export const versionWithSeals = migrations.indexOf(auditSeals) + 1;
