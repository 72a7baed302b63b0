# Copyright The pulsar-autoscaler Authors
# SPDX-License-Identifier: Apache-2.0

"""Copies each message to the output after a service time, as a function that calls a remote service does.

User configuration: serviceTimeMillis is the mean (10), distribution is Constant (the default), Exponential or Lognormal,
and sigma is that of Lognormal (1).
"""

import math
import random
import time

from pulsar import Function


class WorkFunction(Function):
    def process(self, input, context):
        time.sleep(self.service_time(context))
        return context.message.data()  # the default SerDe may have made a number of the input

    def service_time(self, context):
        """What the next message costs, in seconds."""

        def setting(key, otherwise):
            value = context.get_user_config_value(key)
            return otherwise if value is None else value

        mean = float(setting("serviceTimeMillis", 10)) / 1000
        sigma = float(setting("sigma", 1))
        distribution = setting("distribution", "Constant")
        if distribution == "Constant":
            return mean
        if distribution == "Exponential":
            return mean * random.expovariate(1)
        if distribution == "Lognormal":
            return mean * random.lognormvariate(-sigma * sigma / 2, sigma)
        raise ValueError("distribution is %s: it must be Constant, Exponential or Lognormal" % distribution)
