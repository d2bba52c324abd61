/** How long data is kept, and how it is removed. */
export interface RetentionSettings {
  readonly callsMs: number;
  readonly minutesMs: number;
  readonly hoursMs: number;
  readonly daysMs: number;
  readonly auditMs: number;
  readonly revokedKeysMs: number;
  readonly intervalMs: number;
  /** Most rows that one transaction removes of a table. */
  readonly batchRows: number;
}
