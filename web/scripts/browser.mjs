// The chromium that tests and pictures are made with.
import { existsSync } from "node:fs";
import { chromium } from "playwright-core";

const executablePath = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"].find(existsSync);

/** Starts it, or says what to install. */
export async function launch() {
  if (!executablePath) throw new Error("no chromium here: apt-get install chromium");
  return chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-gpu"] });
}
