"""The eight schools of Rubin (1981), sampled by NUTS: numpyro's first example."""

import json

import jax
import numpy as np
import numpyro
import numpyro.distributions as dist
from numpyro.infer import MCMC, NUTS, Predictive
from numpyro.infer.reparam import TransformReparam

y = np.array([28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0], np.float32)
sigma = np.array([15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0], np.float32)


def eight_schools(sigma, y=None):
    mu = numpyro.sample("mu", dist.Normal(0, 5))
    tau = numpyro.sample("tau", dist.HalfCauchy(5))
    with numpyro.plate("J", 8):
        with numpyro.handlers.reparam(config={"theta": TransformReparam()}):
            theta = numpyro.sample(
                "theta", dist.TransformedDistribution(dist.Normal(0.0, 1.0), dist.transforms.AffineTransform(mu, tau))
            )
        numpyro.sample("obs", dist.Normal(theta, sigma), obs=y)


mcmc = MCMC(NUTS(eight_schools), num_warmup=500, num_samples=1000, progress_bar=False)
mcmc.run(jax.random.key(0), sigma, y=y, extra_fields=("potential_energy",))
samples = mcmc.get_samples()
predicted = Predictive(eight_schools, samples)(jax.random.key(1), sigma)["obs"]
summary = numpyro.diagnostics.summary(mcmc.get_samples(group_by_chain=True))
assert abs(float(summary["mu"]["mean"]) - 4.4) < 1.0 and float(summary["mu"]["r_hat"]) < 1.05

# Each step of a chain multiplies rounding errors: numbers are compared on a short one in double precision.
with jax.enable_x64(True):
    short = MCMC(NUTS(eight_schools), num_warmup=60, num_samples=10, progress_bar=False)
    short.run(jax.random.key(0), sigma.astype(float), y=y.astype(float), extra_fields=("potential_energy",))
    draws = short.get_samples()

results = {
    **{name: np.asarray(values).tolist() for name, values in draws.items()},
    "energies": np.asarray(short.get_extra_fields()["potential_energy"]).tolist(),
    "predicted_shape": list(map(int, predicted.shape)),
    "names": sorted(summary),
}
print(json.dumps({"tolerance": 1e-4, "results": results}))
