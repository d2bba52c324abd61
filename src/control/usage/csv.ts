export type CsvValue = string | number | boolean | null;

/** A line of RFC 4180. */
export function csvLine(values: readonly CsvValue[]): string {
  return `${values.map(cell).join(",")}\r\n`;
}

function cell(value: CsvValue): string {
  if (value === null) return "";
  // An amount may be negative.
  if (typeof value !== "string" || /^-?\d+\.\d+$/.test(value)) return String(value);
  const text = value.replaceAll(formula, "$1$2'");
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** Where a spreadsheet would begin a formula; some split at semicolons, whatever the quotes. */
const formula = /(^|;)(["\s]*)(?=[=+\-@＝＋－＠])/g;
