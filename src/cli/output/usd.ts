/** An amount as the admin API writes it, without the zeros at its end beyond cents. */
export function shortUsd(amount: string): string {
  return amount.replace(/(\.\d\d\d*?)0+$/, "$1");
}

/** A cost that may be missing: that is not an amount of 0. */
export function costText(cost: unknown): string {
  return typeof cost === "string" ? shortUsd(cost) : "not priced";
}
