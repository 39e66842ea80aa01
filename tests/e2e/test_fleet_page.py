"""The page of a fleet, in a real Chromium, beside real processes."""
import json
import signal
import unittest

import chromium
from fleets import FleetTest, declaration, identifiers
from harness import main, until

MARKUP = "<img src=x onerror=\"document.title='owned'\">"


@unittest.skipUnless(chromium.PROGRAM, "Chromium is not installed")
class Page(FleetTest):
    def setUp(self):
        super().setUp()
        self.workers = self.stand_ins(2)
        config = declaration(4, self.workers.urls())
        config["models"][0]["name"] = config["displays"][0]["name"] = MARKUP
        self.start_fleet(config=config)
        self.wait_placed(self.workers, range(2), identifiers(4))
        self.browser = chromium.Chromium()
        self.addCleanup(self.browser.close)

    def open_at(self, name):
        self.browser.go("http://127.0.0.1:%d/" % self.processes[name].port)
        self.browser.wait_text("#link", "live from")

    def test_the_page_follows_a_new_master_without_a_reload(self):
        browser, first = self.browser, self.wait_master()
        other = next(name for name in self.processes if name != first)
        self.open_at(other)
        browser.value("window.isTheSamePage = true")
        browser.wait_text("#leader b", first)
        self.processes[first].kill()
        second = self.wait_master()
        browser.wait_text("#leader b", second)
        browser.wait_text("#log-lines", "leader-changed")
        self.assertTrue(browser.value("window.isTheSamePage"))
        self.assertEqual(browser.said, [])

    def test_the_page_comes_back_with_its_process(self):
        browser, name = self.browser, next(iter(self.processes))
        self.open_at(name)
        browser.value("window.isTheSamePage = true")
        self.processes[name].kill()
        browser.wait_text("#link", "does not answer")
        self.processes[name].start()
        browser.wait_text("#link", "live from")
        self.assertTrue(browser.value("window.isTheSamePage"))

    def test_the_page_says_that_its_process_hangs_and_is_back_with_it(self):
        browser, process = self.browser, self.processes["a"]
        self.open_at("a")
        process.run.send_signal(signal.SIGSTOP)
        browser.wait_text("#link", "does not answer")
        process.run.send_signal(signal.SIGCONT)
        browser.wait_text("#link", "live from")

    def test_what_is_there_is_shown_and_never_as_markup(self):
        browser = self.browser
        self.open_at(next(iter(self.processes)))
        for identifier in identifiers(4):
            browser.wait_text("#wall", identifier)
        for index in range(2):
            browser.wait_text("#worker-cards", self.workers.id(index))
        browser.wait_text("#display-rows", "display-1")
        until(lambda: browser.value(
            "[...document.querySelectorAll('#wall img')].some(one => one.naturalWidth > 0)"),
            "a picture")
        self.workers.tell("0 detect %s %s" % (
            self.workers.list_of(0)[0], json.dumps({"carBrand": MARKUP})))
        browser.wait_text("#wall", "carBrand " + MARKUP)
        self.assertNotEqual(browser.value("document.title"), "owned")
        self.assertEqual(browser.value("document.querySelectorAll('[onerror]').length"), 0)
        self.assertNotIn("canary", browser.value("document.documentElement.outerHTML"))

    def test_a_camera_that_stalls_is_counted(self):
        browser = self.browser
        self.open_at(next(iter(self.processes)))
        browser.wait_text("#wall", "at " + self.workers.id(0))
        for times in 1, 2:
            self.workers.tell("0 fault blind")
            browser.wait_text("#wall", "camera offline · offline %d× in the last hour" % times)
            self.workers.tell("0 heal")
            browser.wait_text("#wall", "%s · offline %d× in the last hour" % (
                self.workers.id(0), times))

    def test_a_worker_is_cordoned_and_a_session_is_set_by_keyboard(self):
        browser = self.browser
        self.open_at(next(iter(self.processes)))
        browser.wait_text("#worker-cards", "Cordon")
        browser.value("document.querySelector('#worker-cards button').focus()")
        browser.key("Enter", 13)
        browser.wait_text("#worker-cards", "Uncordon")
        until(lambda: any(one["cordoned"] for one in self.get("/api/workers")["items"]), self.logs)
        browser.wait_text("#display-rows", "Session")
        browser.value("document.querySelector('#display-rows button').focus()")
        browser.key("Enter", 13)
        browser.wait_text("#dialog", "Session of")
        browser.value("document.querySelector('#dialog input').value = 'many'")
        browser.value("document.querySelector('#dialog input').focus()")
        browser.key("Enter", 13)
        until(lambda: browser.value(
            "[...document.querySelectorAll('#dialog .wrong')].some(one => one.textContent)"),
            "the server's refusal beside the field")
        browser.value("document.querySelector('#dialog input').value = '4711'")
        browser.key("Enter", 13)
        browser.wait_text("#display-rows", "4711")

    def press(self, button):
        self.browser.value(button + ".focus()")
        self.browser.key("Enter", 13)

    def edit(self, one):
        self.browser.wait_text("#wall", one)
        card = "[...document.querySelectorAll('.camera')].find(c => c.textContent.includes('%s'))"
        self.press((card + ".querySelector('button')") % one)
        self.browser.wait_text("#dialog", "Subscription " + one)

    def test_what_others_have_changed_since_a_dialog_was_opened_is_not_taken_back(self):
        browser, one = self.browser, identifiers(4)[0]
        path = "/api/subscriptions/" + one.replace(";", "%3B")
        self.open_at("a")
        self.edit(one)
        self.assertEqual(self.processes["a"].ask("PATCH", path, {"priority": 7})[0], 200)
        browser.value("document.querySelector('#dialog [name=cropX1]').value = '9'")
        self.press("document.querySelector('#dialog .main')")
        browser.wait_text("#dialog", "another revision")
        found = self.processes["a"].ask("GET", path)[1]
        self.assertEqual((found["priority"], found.get("cropX1")), (7, None))
        self.press("document.querySelector('#dialog .actions button[type=button]')")
        self.edit(one)
        until(lambda: browser.value("document.querySelector('#dialog [name=priority]').value") ==
              "7", "the priority that is there now, in a new dialog")

    def test_what_a_display_has_now_is_shown(self):
        browser, path = self.browser, "/api/displays/fresh"
        row = "document.querySelector('[data-key=fresh]')?.textContent || ''"
        self.open_at("a")
        ask = self.processes["a"].ask
        self.assertEqual(ask("PUT", path, {})[0], 201)
        self.assertEqual(ask("PUT", path + "/session", {"sessionId": 4711})[0], 204)
        until(lambda: "4711" in browser.value(row), "the session")
        browser.value("document.querySelector('[data-key=fresh]').scrollIntoView()")
        self.assertEqual(ask("PATCH", path + "/data", {"currentCar": {"carBrand": "Honda"}})[0],
                         204)
        until(lambda: "Honda" in browser.value(row), "the car, of which no event tells")
        self.assertEqual(ask("DELETE", path)[0], 204)
        until(lambda: browser.value(row) == "", "no row")
        self.assertEqual(ask("PUT", path, {})[0], 201)
        until(lambda: "fresh" in browser.value(row) and "4711" not in browser.value(row),
              "a display without a session")

    def test_a_subscription_is_edited(self):
        browser, one = self.browser, identifiers(4)[0]
        self.open_at(next(iter(self.processes)))
        self.edit(one)
        for name, value in ("cropX1", 9), ("cropX2", 8):
            browser.value("document.querySelector('#dialog [name=%s]').value = '%d'" % (
                name, value))
        self.press("document.querySelector('#dialog .main')")
        browser.wait_text("#dialog", "cropX2")
        until(lambda: browser.value(
            "[...document.querySelectorAll('#dialog .wrong')].some(one => one.textContent)"),
            "the server's refusal beside the field")
        browser.value("document.querySelector('#dialog [name=cropX2]').value = '90'")
        self.press("document.querySelector('#dialog .main')")
        until(lambda: self.get("/api/subscriptions/" + one.replace(";", "%3B")).get(
            "cropX2") == 90, self.logs)

    def test_leadership_is_passed_on(self):
        browser, first = self.browser, self.wait_master()
        self.open_at(first)
        second = next(name for name in self.processes if name != first)
        browser.wait_text("#processes", second)
        self.press("document.querySelector('#leader button')")
        browser.wait_text("#dialog", "Pass leadership on")
        browser.value("document.querySelector('#dialog [name=to]').value = '%s'" % second)
        self.press("document.querySelector('#dialog .main')")
        browser.wait_text("#leader b", second)
        self.assertEqual(self.wait_master(), second)

    def test_it_fits_a_phone_in_both_colours(self):
        self.open_at(next(iter(self.processes)))
        self.browser.wait_text("#wall", "cam-0")
        for scheme in "light", "dark":
            self.browser.emulate(360, 740, scheme)
            self.assertLessEqual(self.browser.value("document.documentElement.scrollWidth"), 360)
        dark = self.browser.value("getComputedStyle(document.body).backgroundColor")
        self.browser.emulate(360, 740, "light")
        self.assertNotEqual(
            dark, self.browser.value("getComputedStyle(document.body).backgroundColor"))


if __name__ == "__main__":
    main()
