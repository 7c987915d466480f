/** How the server reaches Google Cloud: what its environment says. */
import type { GoogleWorkflowsOptions } from "@taskferry/google-workflows";
import { OAuth2Client } from "google-auth-library";

const {
  GOOGLE_CLOUD_PROJECT,
  GOOGLE_CLOUD_LOCATION = "us-central1",
  PUSH_AUDIENCE,
  PUSH_SERVICE_ACCOUNT,
  WORKFLOWS_EMULATOR_GRPC,
  WORKFLOWS_EMULATOR_REST,
} = process.env;
if (!GOOGLE_CLOUD_PROJECT) throw new Error("Set GOOGLE_CLOUD_PROJECT to the project's id");

/** Emulators have no TLS, take any credentials, and publish certificates of their own. */
const emulator = WORKFLOWS_EMULATOR_GRPC !== undefined && WORKFLOWS_EMULATOR_REST !== undefined;
const certificates = `${WORKFLOWS_EMULATOR_REST}/oauth2/v1/certs`;
const verifier = new OAuth2Client({ endpoints: { oauth2FederatedSignonPemCertsUrl: certificates } });

/** What the adapters of all workflows share. */
export const google: Omit<GoogleWorkflowsOptions, "workflow"> = {
  project: GOOGLE_CLOUD_PROJECT,
  location: GOOGLE_CLOUD_LOCATION,
  ...(PUSH_AUDIENCE &&
    PUSH_SERVICE_ACCOUNT && {
      push: {
        audience: PUSH_AUDIENCE,
        serviceAccountEmail: PUSH_SERVICE_ACCOUNT,
        ...(emulator && { verifier }),
      },
    }),
  ...(emulator && {
    apiEndpoint: WORKFLOWS_EMULATOR_GRPC,
    restEndpoint: WORKFLOWS_EMULATOR_REST,
    insecure: true,
  }),
};
