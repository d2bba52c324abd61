/** Types of the admin API, from its schemas. Nothing of the schemas themselves is in the console. */
import type { z } from "zod";
import type * as contract from "../../../src/control/contract.ts";

export type {
  CallDetail,
  AuditEntryView,
  AuditVerbs,
  CallRow,
  KeyStatus,
  KeyUseView,
  KeyView,
  LiveTargetView,
  NeedView,
  OpenSessionView,
  PlanView,
  PoolView,
  ProcessRowView,
  RefusalView,
  RoutingView,
  SessionView,
  SignInOptionsView,
  TokenView,
  UserView,
} from "../../../src/control/contract.ts";

type Output<Schema extends z.ZodType> = z.output<Schema>;
type Input<Schema extends z.ZodType> = z.input<Schema>;

export interface Listed<Item> {
  readonly data: readonly Item[];
  readonly next_cursor: string | null;
}

export type Role = Output<typeof contract.roleSchema>;
export type AccountView = Output<typeof contract.accountSchema>;
export type ChangedAccount = Output<typeof contract.changedAccountSchema>;
export type Erased = Output<typeof contract.erasedSchema>;
export type Configuration = Output<typeof contract.configurationSchema>;
export type IssuedLink = Output<typeof contract.issuedLinkSchema>;
export type IssuedToken = Output<typeof contract.issuedTokenSchema>;
export type ApplicationView = Output<typeof contract.applicationSchema>;
export type ChangedApplication = Output<typeof contract.changedApplicationSchema>;
export type ChangedKey = Output<typeof contract.changedKeySchema>;
export type IssuedKey = Output<typeof contract.issuedKeySchema>;
export type RotatedKey = Output<typeof contract.rotatedKeySchema>;
export type SecretView = Output<typeof contract.secretSchema>;
export type Environments = Output<typeof contract.environmentsSchema>;
export type Plans = Output<typeof contract.plansSchema>;
export type Models = Output<typeof contract.modelsSchema>;
export type ModelView = Output<typeof contract.modelSchema>;
export type Limits = Output<typeof contract.limitsSchema>;
export type UsageTotals = Output<typeof contract.totalsSchema>;
export type Pools = Output<typeof contract.poolsSchema>;
export type Overview = Output<typeof contract.overviewSchema>;
export type Processes = Output<typeof contract.processesSchema>;
export type Targets = Output<typeof contract.targetsSchema>;
export type Applied = NonNullable<ChangedKey["applied"]>;

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

export type UsageSeries = Output<typeof contract.seriesSchema>;
export type UsagePoint = Output<typeof contract.usagePointSchema>;
export type Refusals = Output<typeof contract.refusalsSchema>;
export type Explanation = Output<typeof contract.explanationSchema>;
export type Removed = Output<typeof contract.removedSchema>;
export type SignedOut = Output<typeof contract.signedOutSchema>;

export type Credentials = Input<typeof contract.credentialsSchema>;
export type NewOperator = Input<typeof contract.bootstrapSchema>;
export type NewApplication = Input<typeof contract.newApplicationSchema>;
export type ApplicationChange = Input<typeof contract.applicationChangeSchema>;
export type NewKey = Input<typeof contract.newKeySchema>;
export type KeyChange = Input<typeof contract.keyChangeSchema>;
export type Rotation = Input<typeof contract.rotationSchema>;
export type LinkExchange = Input<typeof contract.linkExchangeSchema>;
export type PasswordChange = Input<typeof contract.passwordChangeSchema>;
export type NewAccount = Input<typeof contract.newAccountSchema>;
export type AccountChange = Input<typeof contract.accountChangeSchema>;
export type Erasure = Input<typeof contract.erasureSchema>;
export type NewUser = Input<typeof contract.newUserSchema>;
export type UserChange = Input<typeof contract.userChangeSchema>;
export type NewLink = Input<typeof contract.newLinkSchema>;
export type NewToken = Input<typeof contract.newTokenSchema>;
