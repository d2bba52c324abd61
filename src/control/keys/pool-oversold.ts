import {
  sellableUnits,
  floorTokens,
  guaranteedTokens,
  heldTokens,
  type Pool,
} from "../../domain/limits/capacity.ts";
import { GatewayError } from "../../domain/errors/gateway-error.ts";

type OversaleDetails = ReturnType<typeof detailsOf>;

/** A 409 for units that do not fit beside those already sold, with the calculation. */
export class PoolOversold extends GatewayError {
  readonly details: OversaleDetails;

  constructor(pool: Pool, units: { readonly sold: number; readonly more: number }) {
    const details = detailsOf(pool, units);
    super("pool_oversold", { message: describe(details), param: "provisioned_units" });
    this.details = details;
  }

  override toBody() {
    const { error } = super.toBody();
    return { error: { ...error, details: this.details } };
  }
}

function detailsOf(pool: Pool, { sold, more }: { sold: number; more: number }) {
  const sellable = sellableUnits(pool);
  return {
    pool: pool.name,
    tokens_per_minute: pool.tokensPerMinute,
    unit_tokens_per_minute: pool.unitTokensPerMinute,
    floor_tokens_per_minute: floorTokens(pool),
    sold_units: sold,
    requested_units: more,
    held_tokens_per_minute: heldTokens(guaranteedTokens(sold + more, pool)),
    sellable_units: sellable,
    units_left: Math.max(0, sellable - sold),
  };
}

function describe(details: OversaleDetails): string {
  const { pool, sold_units: sold, requested_units: more, units_left: left } = details;
  const held = details.held_tokens_per_minute;
  const floor = details.floor_tokens_per_minute;
  return (
    `Pool ${pool} cannot hold ${count(more)} more unit${more === 1 ? "" : "s"}: ` +
    `(${count(sold)} + ${count(more)}) x ${count(details.unit_tokens_per_minute)} tokens x 60/59 = ` +
    `${count(held)} held, + ${count(floor)} never sold = ${count(held + floor)} of its ` +
    `${count(details.tokens_per_minute)} tokens per minute. Units left: ${count(left)}.`
  );
}

function count(number: number): string {
  return number.toLocaleString("en-US");
}
