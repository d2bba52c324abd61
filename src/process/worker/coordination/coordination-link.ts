import type { LinkLost } from "../../link/link-errors.ts";
import type { LeaseId } from "../../../store/coordinator/leases/lease-account.ts";
import type { WireLease } from "../../link/lease-wire.ts";
import type { WireUse, WireUsed } from "../../link/limit-use-wire.ts";
import type { Link, Messages } from "../../link/link.ts";
import type {
  ControlMessages,
  CoordinationMessages,
  HeldReport,
  LimitsState,
} from "../../link/messages.ts";
import type { WireBound, WireLent } from "../../link/place-wire.ts";

/**
 * The connection to what all workers share. Asks reject with `LinkLost` while control is
 * unavailable.
 */
export interface CoordinationLink<Sent extends Messages = CoordinationMessages> extends Pick<
  Link<Sent, ControlMessages>,
  "ask" | "tell" | "tellSoon"
> {
  /** Call before anything is asked, in the same turn in which the first part joins. */
  join(part: CoordinationPart): void;
}

/** A part of a worker that asks control. */
export interface CoordinationPart {
  /** Who decides about the limits. */
  readonly limitsState?: LimitsState | undefined;
  /** Returns what this worker holds; from now on control decides. */
  report(): HeldReport;
  /** Resolves when `report` may be called; undefined: it may be called now. */
  reportable?(): Promise<void> | undefined;
  /** Called when this worker is the only one. */
  yours?(): void;
  /** The link is lost. Control may still be running, so nothing may be decided alone yet. */
  lost?(reason: LinkLost): void;
  /** Control has ended; called again at each attempt to connect. */
  alone?(): void;
  used?(told: WireUsed): void;
  seen?(): readonly WireUse[];
  /** The worker is about to end normally. */
  closing?(): void;
  leased?(lease: WireLease): void;
  recall?(ids: readonly LeaseId[]): void;
  lent?(lent: readonly WireLent[]): void;
  scarce?(bounds: readonly WireBound[]): void;
  plenty?(bounds: readonly WireBound[]): void;
}
