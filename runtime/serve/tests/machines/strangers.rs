//! Who may: keys that are swapped, another token's key, a replayed job, a program that was replaced.

use crate::client::TestClient;
use crate::fixture::{QUOTA, Service};

#[test]
fn keys_and_jobs_belong_to_their_token_at_every_gateway() {
    let service = Service::new();
    let (ta, tb) = (service.token("a", QUOTA), service.token("b", QUOTA));
    let (first, second) = (service.gateway(""), service.gateway(""));
    let _worker = service.worker("");
    first.get("/v1/programs").expect(401, "no-token");
    let (a, b) = (TestClient::new(1, Some(&ta)), TestClient::new(2, Some(&tb)));
    // Keys of one client under the name of another's: found out at the head, and nothing stays.
    a.send(&first, "PUT", &a.keys_path(), &[], &b.keys).expect(422, "bad-keys");
    assert_eq!(a.get(&second, &a.keys_path()).json()["state"], "refused");
    // Keys that are whole and wrong: a worker finds out.
    let mut wrong = a.keys.clone();
    let middle = wrong.len() / 2;
    wrong[middle] ^= 1;
    a.send(&second, "PUT", &format!("{}?wait=60", a.keys_path()), &[], &wrong).expect(422, "bad-keys");
    a.upload(&first);
    b.upload(&second);
    // The key of another token, and a job of another token.
    let input = a.encrypt(&a.tensor(1), 1);
    b.send(&first, "POST", &a.jobs_path(), &[], &input).expect(404, "no-such-keys");
    b.send(&first, "POST", &b.jobs_path(), &[], &input).expect(422, "bad-input");
    let path = format!("{}&wait=60", a.jobs_path());
    let job = a.send(&first, "POST", &path, &[], &input).expect(200, "").json();
    let job_path = format!("/v1/jobs/{}", job["id"].as_str().unwrap());
    b.get(&second, &job_path).expect(404, "no-such-job");
    b.get(&second, &format!("{job_path}/result")).expect(404, "no-such-job");
    // A replay is the same job, evaluated once.
    let again = a.send(&second, "POST", &path, &[], &input).expect(200, "").json();
    assert_eq!((&again, &again["attempts"]), (&job, &1.into()));
    // A program that is not served.
    let other = a.jobs_path().replace(&a.program_id(), &"0".repeat(64));
    a.send(&first, "POST", &other, &[], &input).expect(404, "no-such-program");
}

#[test]
fn quotas_count_over_all_gateways() {
    let service = Service::new();
    let quota = fhe_serve::tokens::Quota { queued_jobs: 2, ..QUOTA };
    let token = service.token("small", quota);
    let (first, second) = (service.gateway(""), service.gateway(""));
    let client = TestClient::new(1, Some(&token));
    {
        let _worker = service.worker("");
        client.upload(&first);
    }
    let send = |gateway, number| {
        client.send(
            gateway,
            "POST",
            &client.jobs_path(),
            &[],
            &client.encrypt(&client.tensor(number), number),
        )
    };
    send(&first, 1).expect(202, "");
    send(&second, 2).expect(202, "");
    send(&first, 3).expect(429, "quota-jobs");
}
