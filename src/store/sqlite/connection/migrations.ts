import type { Migration } from "../../schema-version.ts";
import { auditSeals } from "../migrations/audit-seals.ts";
import { cacheWrites } from "../migrations/cache-writes.ts";
import { callReplies, callReplyShares } from "../migrations/call-replies.ts";
import { callRouting } from "../migrations/call-routing.ts";
import { compatibleVersions } from "../migrations/compatible-versions.ts";
import { controlPlane } from "../migrations/control-plane.ts";
import { firstSchema } from "../migrations/first-schema.ts";
import { installation, pepperMarks } from "../migrations/installation.ts";
import { keyNames } from "../migrations/key-names.ts";
import { lateRows } from "../migrations/late-rows.ts";
import { limitHistory } from "../migrations/limit-history.ts";
import { provisionedPools } from "../migrations/provisioned-pools.ts";
import { rareFilters } from "../migrations/rare-filters.ts";
import { tokenParents } from "../migrations/token-parents.ts";
import { usageRollups } from "../migrations/usage-rollups.ts";

/** Programs from before `compatible-versions` refuse every newer schema. */
const early: readonly string[] = [
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
  compatibleVersions,
];

/**
 * Steps of the schema, applied in order and never changed once released: `PRAGMA user_version`
 * counts how many a database has. Times are milliseconds since the epoch.
 */
export const migrations: readonly Migration[] = early.map((sql, index) => ({
  sql,
  compatibleSince: index + 1,
}));

/** The schema version from which the audit has seals. */
export const versionWithSeals = early.indexOf(auditSeals) + 1;
