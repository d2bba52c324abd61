import type { Migration } from "../../schema-version.ts";
import { auditSeals } from "../migrations/audit-seals.ts";
import { callReplies, callReplyShares } from "../migrations/call-replies.ts";
import { compatibleVersions } from "../migrations/compatible-versions.ts";
import { controlPlane } from "../migrations/control-plane.ts";
import { firstSchema } from "../migrations/first-schema.ts";
import { installation, pepperMarks } from "../migrations/installation.ts";
import { keyNames } from "../migrations/key-names.ts";
import { lateRows } from "../migrations/late-rows.ts";
import { limitHistory } from "../migrations/limit-history.ts";
import { provisionedPools } from "../migrations/provisioned-pools.ts";
import { rareFilters } from "../migrations/rare-filters.ts";
import { replicaDifferences, replicas } from "../migrations/replicas.ts";
import { tokenParents } from "../migrations/token-parents.ts";
import { cacheWrites, callRouting } from "../migrations/usage-columns.ts";
import { usageRollups } from "../migrations/usage-rollups.ts";

/** Programs from before the last of these refuse every newer schema. */
const early = {
  "first-schema": firstSchema,
  "control-plane": controlPlane,
  "usage-rollups": usageRollups,
  "late-rows": lateRows,
  "rare-filters": rareFilters,
  "provisioned-pools": provisionedPools,
  "call-routing": callRouting,
  "call-replies": callReplies,
  "call-reply-shares": callReplyShares,
  installation,
  "limit-history": limitHistory,
  "audit-seals": auditSeals,
  "token-parents": tokenParents,
  "pepper-marks": pepperMarks,
  "cache-writes": cacheWrites,
  "key-names": keyNames,
  "compatible-versions": compatibleVersions,
};

/**
 * Steps of the schema, applied in order and never changed once released: `PRAGMA user_version`
 * counts how many a database has. Times are milliseconds since the epoch.
 */
export const migrations: readonly Migration[] = [
  ...Object.entries(early).map(([name, sql], index) => ({ name, sql, compatibleSince: index + 1 })),
  { name: "replicas", sql: replicas, compatibleSince: 17 },
  { name: "replica-differences", sql: replicaDifferences, compatibleSince: 17 },
];

/** The schema version from which the audit has seals. */
export const versionWithSeals = migrations.findIndex(({ sql }) => sql === auditSeals) + 1;
