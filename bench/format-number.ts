/** Empty for a figure that there is not. */
export function formatNumber(value: number | undefined): string {
  if (value === undefined) return "";
  return Math.abs(value) >= 100 ? String(Math.round(value)) : value.toFixed(2);
}
