/** How long data is kept, and how it is removed. */
export interface RetentionSettings {
  readonly callsMs: number;
  readonly hoursMs: number;
  readonly daysMs: number;
  readonly auditMs: number;
  readonly revokedKeysMs: number;
  readonly intervalMs: number;
  /** Limit on rows that one transaction removes from a table. */
  readonly batchRows: number;
}
