/** A table that is copied in batches. */
export interface CopiedTable {
  readonly name: string;
  /** Columns that order and identify its rows. */
  readonly key: readonly string[];
  /** Rows that are read at once. */
  readonly batchRows: number;
}

const batchRows = 1_000;
/** Of tables with long values. */
const fewRows = 20;

function table(name: string, ...key: readonly string[]): CopiedTable {
  return { name, key: key.length === 0 ? ["id"] : key, batchRows };
}

/** Tables of any size. Rows come after those that they refer to. */
export const largeTables: readonly CopiedTable[] = [
  table("accounts"),
  table("erased_accounts"),
  table("applications"),
  table("keys"),
  table("secrets", "public_id"),
  table("removed_keys", "changed_epoch"),
  table("left_limit_scopes", "key_id"),
  table("users"),
  table("sessions"),
  table("management_tokens"),
  { ...table("replies"), batchRows: fewRows },
  { ...table("call_replies"), batchRows: fewRows },
  table("audit", "sequence"),
  table("usage", "started_at", "id"),
  table("usage_groups"),
  table("usage_sums", "grain", "at", "group_id"),
];

/** Tables of few rows, which an empty database has or triggers fill. Each is replaced as a whole. */
export const smallTables: readonly CopiedTable[] = [
  table("epochs", "name"),
  table("audit_anchor", "sequence"),
  table("audit_head", "place"),
  table("usage_horizons", "step"),
  table("call_replies_sum", "bytes"),
  table("call_reply_shares", "account_id"),
  table("installation", "place"),
  // Signs of gateways that do not run any more are forgotten by their age.
];

/** What concerns the gateways of a database alone; those of the copy begin anew. */
export const leftTables: readonly string[] = ["replicas", "call_claims"];
