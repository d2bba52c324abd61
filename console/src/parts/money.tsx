import { exactText } from "./numbers.tsx";

const cents = new Intl.NumberFormat(undefined, { style: "currency", currency: "USD" });
const least = 0.0001;

/** Two decimals from 1 USD, else four significant digits; what costs something is never "$0.00". */
export function usdText(amount: number): string {
  const size = Math.abs(amount);
  if (size === 0) return "$0";
  const sign = amount < 0 ? "-" : "";
  if (size < least && amount > 0) return `< $${least}`;
  const short = Number(size.toPrecision(4));
  const decimals = String(short).replace(/^\d+\.?/, "").length;
  const text = short >= 1 ? cents.format(size) : `$${short.toFixed(Math.max(2, decimals))}`;
  return `${sign}${text}`;
}

/** What calls cost. Without a price it is not known: at least the sum of those that have one. */
export function Cost({
  usd,
  unpricedCalls = 0,
}: {
  /** As the API has it: "0.012400000"; null: nothing of it has a price. */
  readonly usd: string | null;
  readonly unpricedCalls?: number;
}) {
  if (usd === null) return <span className="muted">not priced</span>;
  const isLeast = unpricedCalls > 0;
  const missing = isLeast ? `; without a price: ${unpricedCalls} of the calls` : "";
  return (
    <span className="number" title={`${usd} USD${missing}`}>
      {isLeast ? ">= " : ""}
      {usdText(Number(usd))}
    </span>
  );
}

/** Of some calls, how many are not in their cost. */
export function unpricedText(calls: number): string | undefined {
  if (calls === 0) return undefined;
  return calls === 1 ? "1 call has no price" : `${exactText(calls)} calls have no price`;
}

/** The exact sum of amounts as the API has them; null: none of them is known. */
export function sumOfUsd(amounts: readonly (string | null)[]): string | null {
  const known = amounts.filter((amount) => amount !== null);
  if (known.length === 0) return null;
  const nano = known.reduce((sum, amount) => sum + nanoOf(amount), 0n);
  const digits = String(nano < 0n ? -nano : nano).padStart(10, "0");
  return `${nano < 0n ? "-" : ""}${digits.slice(0, -9)}.${digits.slice(-9)}`;
}

function nanoOf(amount: string): bigint {
  const [whole = "", fraction = ""] = amount.split(".");
  return BigInt(whole + fraction.padEnd(9, "0").slice(0, 9));
}
