/** Types of the admin API, from its schemas. Nothing of the schemas themselves is in the console. */
import type { z } from "zod";
import type * as contract from "../../../src/control/contract.ts";

export type * from "../../../src/control/contract.ts";

export type Output<Schema extends z.ZodType> = z.output<Schema>;
export type Input<Schema extends z.ZodType> = z.input<Schema>;

export interface Listed<Item> {
  readonly data: readonly Item[];
  readonly next_cursor: string | null;
}

export type Role = Output<typeof contract.roleSchema>;
export type AccountView = Output<typeof contract.accountSchema>;
export type ApplicationView = Output<typeof contract.applicationSchema>;
export type Applied = NonNullable<Output<typeof contract.changedKeySchema>["applied"]>;
export type Configuration = Output<typeof contract.configurationSchema>;
export type Erased = Output<typeof contract.erasedSchema>;
export type Explanation = Output<typeof contract.explanationSchema>;
export type IssuedKey = Output<typeof contract.issuedKeySchema>;
export type IssuedLink = Output<typeof contract.issuedLinkSchema>;
export type IssuedToken = Output<typeof contract.issuedTokenSchema>;
export type KeyChange = Input<typeof contract.keyChangeSchema>;
export type Limits = Output<typeof contract.limitsSchema>;
export type ModelView = Output<typeof contract.modelSchema>;
export type NewAccount = Input<typeof contract.newAccountSchema>;
export type Overview = Output<typeof contract.overviewSchema>;
export type Prices = Output<typeof contract.pricesSchema>;
export type Processes = Output<typeof contract.processesSchema>;
export type RotatedKey = Output<typeof contract.rotatedKeySchema>;
export type SecretView = Output<typeof contract.secretSchema>;
export type Targets = Output<typeof contract.targetsSchema>;
export type UsagePoint = Output<typeof contract.usagePointSchema>;
export type UsageSeries = Output<typeof contract.seriesSchema>;

/** Lists that forms offer, by name. */
export type Choices = {
  readonly [Name in keyof Lists]-?: NonNullable<Lists[Name]>;
};
type Lists = Output<typeof contract.choicesSchema>;

/** What the live stream has of each topic, by the id of the item. */
export interface LiveItems {
  readonly processes: Output<typeof contract.liveProcessSchema>;
  readonly gateways: Output<typeof contract.liveGatewaySchema>;
  readonly targets: Output<typeof contract.liveTargetSchema>;
  readonly gates: Output<typeof contract.liveGateSchema>;
  readonly keys: Output<typeof contract.keyUseSchema>;
  readonly key: Output<typeof contract.keyLiveSchema>;
  readonly calls: Output<typeof contract.newestCallSchema>;
}
